/*
 * courier-gate.c - loaded into Courier's programs by the tests (LD_PRELOAD):
 * leads them to our socket where they would ask Debian's authdaemond, whose
 * path is compiled in, and says at once that there is no file monitor, for
 * which each session looks two seconds otherwise.
 */
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/un.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
connect(int fd, const struct sockaddr *to, socklen_t len)
{
	int (*really)(int, const struct sockaddr *, socklen_t);
	const char *gate = getenv("COURIER_GATE");
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	*(void **)&really = dlsym(RTLD_NEXT, "connect");
	if (gate == NULL || to->sa_family != AF_UNIX ||
	    strstr(((const struct sockaddr_un *)to)->sun_path,
		"authdaemon") == NULL)
		return really(fd, to, len);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", gate);
	return really(fd, (struct sockaddr *)&un, sizeof(un));
}

int
FAMOpen(void *connection)
{
	(void)connection;
	return -1;
}
