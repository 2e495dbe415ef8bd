/*
 * fatal.c - the MIME parser kills its process, at every multipart message.
 *
 * For LD_PRELOAD into a daemon under test: no code of the product knows.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

void *g_mime_parser_construct_part(void *parser, void *options);

void *
g_mime_parser_construct_part(void *parser, void *options)
{
	(void)parser;
	(void)options;
	kill(getpid(), SIGKILL);
	return NULL;
}
