/*
 * kinds.c - names of child kinds and of the ways a child ends.
 *
 * Runs in: every process of the daemon.  Never blocks.
 */
#include "proc/kinds.h"

#include <sys/wait.h>

const char *
child_kind_name(enum child_kind kind)
{
	static const char *const names[KIND_COUNT] = {
#define X(symbol, name) [symbol] = name,
		CHILD_KINDS(X)
#undef X
	};

	return (unsigned)kind < KIND_COUNT ? names[kind] : "unknown";
}

static const char *
exit_name(int code)
{
	switch (code) {
#define X(symbol, value, name) \
	case symbol:           \
		return name;
		CHILD_EXITS(X)
#undef X
	}
	return NULL;
}

const char *
child_exit_describe(int wait_status, char *out, size_t size)
{
	const char *name;

	if (WIFSIGNALED(wait_status))
		snprintf(out, size, "signal %d", WTERMSIG(wait_status));
	else if (!WIFEXITED(wait_status))
		snprintf(out, size, "status %d", wait_status);
	else if ((name = exit_name(WEXITSTATUS(wait_status))) != NULL)
		snprintf(out, size, "%s", name);
	else
		snprintf(out, size, "exit %d", WEXITSTATUS(wait_status));
	return out;
}
