/*
 * title.c - what ps shows of a process.
 *
 * Runs in: every process of the daemon.  Never blocks.
 */
#include "proc/spawn.h"

#include "base/text.h"

#include <bsd/unistd.h>
#include <stdarg.h>

static bool is_ready;

void
proc_init_title(int argc, char **argv, char **envp)
{
	setproctitle_init(argc, argv, envp);
	is_ready = true;
}

void
proc_set_title(const char *fmt, ...)
{
	char text[256], clean[256];
	va_list ap;

	if (!is_ready)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_clean_line(clean, sizeof(clean), text, strlen(text));
	setproctitle("-mailherd: %s", clean);
}
