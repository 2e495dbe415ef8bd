/*
 * parse.c - the parser alone: CPU time of a message.
 *
 * Run by scripts/bench/parse:
 *	parse DIRECTORY ROUNDS
 *
 * Reads the files of a directory, parses all of them ROUNDS times out of
 * memory, and prints the microseconds of the quickest round a message.
 */
#include "base/arena.h"
#include "mime/mime.h"

#include <bsd/stdlib.h>
#include <dirent.h>
#include <stdio.h>
#include <time.h>

#define MESSAGES_MAX 20000

static struct message {
	char *raw;
	size_t len;
} messages[MESSAGES_MAX];
static size_t n_messages;

static void
read_message(const char *directory, const char *name)
{
	struct message *m = &messages[n_messages];
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (name[0] == '.' || n_messages == MESSAGES_MAX ||
	    (f = fopen(path, "rb")) == NULL)
		return;
	fseek(f, 0, SEEK_END);
	m->len = (size_t)ftell(f);
	rewind(f);
	m->raw = malloc(m->len + 1);
	n_messages += m->raw != NULL && fread(m->raw, 1, m->len, f) == m->len;
	fclose(f);
}

static double
cpu_usecs(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double
parse_all(struct arena *arena)
{
	double start = cpu_usecs();
	struct content content;
	size_t i;

	for (i = 0; i < n_messages; i++) {
		mime_parse(arena, messages[i].raw, messages[i].len,
		    &mime_default_limits, &content);
		arena_reset(arena);
	}
	return cpu_usecs() - start;
}

int
main(int argc, char **argv)
{
	struct arena *arena = arena_new("parse");
	struct dirent *entry;
	double best = 0, used;
	int rounds;
	DIR *dir;

	if (argc != 3 || (dir = opendir(argv[1])) == NULL) {
		fprintf(stderr, "usage: parse DIRECTORY ROUNDS\n");
		return 2;
	}
	while ((entry = readdir(dir)) != NULL)
		read_message(argv[1], entry->d_name);
	closedir(dir);
	if (n_messages == 0)
		return 1;
	mime_init();
	parse_all(arena); /* what is done once */
	rounds = (int)strtonum(argv[2], 1, 1000, NULL);
	for (; rounds > 0; rounds--) {
		used = parse_all(arena);
		if (best == 0 || used < best)
			best = used;
	}
	printf("%.3f\n", best / (double)n_messages);
	arena_free(&arena);
	return 0;
}
