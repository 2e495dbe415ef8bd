/*
 * gone.c - is a process no more?
 *
 * Runs in: master.  Never blocks.
 */
#include "lease/gone.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "pid (name) S ...": a name may hold anything, also a ")". */
static bool
is_zombie(long pid)
{
	char path[48], text[512], *state = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	if (fgets(text, sizeof(text), f) != NULL)
		state = strrchr(text, ')');
	fclose(f);
	return state != NULL && (strncmp(state, ") Z", 3) == 0 ||
	    strncmp(state, ") X", 3) == 0);
}

bool
process_is_gone(long pid)
{
	/* We have its pid now, as in a container that was started again. */
	if (pid == getpid())
		return true;
	if (kill((pid_t)pid, 0) == -1)
		return errno == ESRCH;
	return is_zombie(pid);
}
