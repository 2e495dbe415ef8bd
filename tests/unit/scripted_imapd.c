/*
 * scripted_imapd.c - a server that follows a list: say this, hear that.
 */
#define _GNU_SOURCE
#include "scripted_imapd.h"

#include <errno.h>
#include <fnmatch.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAGS 8

static pid_t server_pid;

static char tags[TAGS][16];

static void
remember_tag(const char *line)
{
	memmove(tags[1], tags[0], sizeof(tags) - sizeof(tags[0]));
	snprintf(tags[0], sizeof(tags[0]), "%.*s", (int)strcspn(line, " "),
	    line);
}

static char *
with_tags(const char *text, size_t *len_r)
{
	char *out = malloc(strlen(text) + 16 * TAGS + 1);
	size_t n = 0;

	for (; *text != '\0'; text++) {
		if (text[0] == '%' && text[1] >= '1' && text[1] <= '8') {
			const char *tag = tags[text[1] - '1'];

			memcpy(out + n, tag, strlen(tag));
			n += strlen(tag);
			text++;
		} else
			out[n++] = *text;
	}
	*len_r = n;
	return out;
}

static bool
say(int fd, const char *text, size_t len)
{
	ssize_t n;

	for (; len > 0; text += n, len -= (size_t)n)
		if ((n = send(fd, text, len, MSG_NOSIGNAL)) <= 0)
			return false;
	return true;
}

/* A line without its end; exits when there is none. */
static void
hear(int fd, const char *pattern)
{
	char line[20000];
	size_t n = 0;

	while (n < sizeof(line) - 1) {
		if (read(fd, line + n, 1) != 1) {
			fprintf(stderr, "scripted_imapd: the client left, "
			    "\"%s\" was expected\n", pattern);
			_exit(1);
		}
		if (line[n] == '\n')
			break;
		n++;
	}
	if (n > 0 && line[n - 1] == '\r')
		n--;
	line[n] = '\0';
	if (fnmatch(pattern, line, 0) != 0) {
		fprintf(stderr, "scripted_imapd: \"%s\" came, \"%s\" was "
		    "expected\n", line, pattern);
		_exit(1);
	}
	remember_tag(line);
}

/* LOGOUT on the way out is no surprise. */
static void
await_end(int fd)
{
	char bytes[4096];
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes) - 1)) > 0) {
		bytes[n] = '\0';
		if (strstr(bytes, "LOGOUT") == NULL) {
			fprintf(stderr, "scripted_imapd: unexpected: %s\n",
			    bytes);
			_exit(1);
		}
	}
}

static void
repeat(int fd, const char *text, bool is_dripping)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t i = 0, len = strlen(text);

	for (;;) {
		if (is_dripping) {
			if (!say(fd, text + i++ % len, 1))
				return;
			if (poll(&p, 1, 5) > 0)
				return;
		} else if (!say(fd, text, len))
			return;
	}
}

static void
follow(int fd, const struct step *step)
{
	for (;; step++) {
		size_t len;
		char *text;

		switch (step->kind) {
		case STEP_SAY:
			text = with_tags(step->text, &len);
			if (!say(fd, text, len))
				_exit(1);
			free(text);
			break;
		case STEP_HEAR:
			hear(fd, step->text);
			break;
		case STEP_PAUSE:
			poll(NULL, 0, 50);
			break;
		case STEP_REPEAT:
		case STEP_DRIP:
			repeat(fd, step->text, step->kind == STEP_DRIP);
			_exit(0);
		case STEP_CLOSE:
			shutdown(fd, SHUT_WR);
			await_end(fd);
			_exit(0);
		case STEP_END:
			await_end(fd);
			_exit(0);
		}
	}
}

uint16_t
scripted_start(const struct step *steps)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	if (listener == -1 ||
	    bind(listener, (struct sockaddr *)&addr, len) == -1 ||
	    listen(listener, 1) == -1 ||
	    getsockname(listener, (struct sockaddr *)&addr, &len) == -1) {
		perror("scripted_imapd");
		exit(99);
	}
	server_pid = fork();
	if (server_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = accept(listener, NULL, NULL);
		close(listener);
		if (fd == -1)
			_exit(1);
		follow(fd, steps);
	}
	close(listener);
	return ntohs(addr.sin_port);
}

int
scripted_finish(void)
{
	int status;

	while (waitpid(server_pid, &status, 0) == -1)
		if (errno != EINTR)
			return -1;
	return status;
}
