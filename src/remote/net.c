/*
 * net.c - a TCP connection to a mail server, within a deadline.
 *
 * Runs in: hot, pool and job children.  Blocks; getaddrinfo knows no deadline,
 * so the resolver is told to give up after two short tries per name server.
 *
 * Every address that might work gets its chance early (RFC 8305): a dead IPv6
 * path costs a quarter second, not a timeout.
 */
#define _GNU_SOURCE
#include "remote/net.h"

#include "base/clock.h"
#include "base/xmem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <resolv.h>
#include <sys/socket.h>
#include <unistd.h>

#define NEXT_ATTEMPT_MSECS 250
#define ATTEMPTS_MAX 8
#define SLICE_MSECS 1000 /* how often may_go_on is asked */

int
net_clean_host(char out[NET_HOST_SIZE], const char *host, struct err *err)
{
	size_t i, len = host != NULL ? strlen(host) : 0;

	if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	}
	if (len > 1 && host[len - 1] == '.')
		len--;
	if (len == 0 || len >= NET_HOST_SIZE)
		return err_set(err, ERR_PERMANENT,
		    "the name of the mail server is %s",
		    len == 0 ? "empty" : "too long");
	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)host[i];

		if (c <= ' ' || c == 0x7F || strchr("/\\\"'()<>@,;", c))
			return err_set(err, ERR_PERMANENT,
			    "\"%.200s\" is no host name", host);
	}
	memcpy(out, host, len);
	out[len] = '\0';
	return 0;
}

bool
net_is_address(const char *host)
{
	unsigned char bytes[sizeof(struct in6_addr)];
	char plain[NET_HOST_SIZE];

	/* A zone ("fe80::1%eth0") is no part of the address. */
	snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(host, "%"), host);
	return inet_pton(AF_INET, plain, bytes) == 1 ||
	    inet_pton(AF_INET6, plain, bytes) == 1;
}

void
net_init(void)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_flags = AI_IDN,
		.ai_socktype = SOCK_STREAM }, *list;

	if (getaddrinfo("localhost", "imap", &hints, &list) == 0)
		freeaddrinfo(list);
}

static int
resolve(const char *host, uint16_t port, struct addrinfo **list_r,
    struct err *err)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM };
	char service[8];
	int r;

	/* At most 2 tries of 3 s for each of the (at most 3) name servers. */
	if (res_init() == 0) {
		_res.retrans = 3;
		_res.retry = 2;
	}
	if (!net_is_address(host))
		hints.ai_flags |= AI_IDN;
	snprintf(service, sizeof(service), "%u", port);
	r = getaddrinfo(host, service, &hints, list_r);
	if (r == 0)
		return 0;
	return err_set(err, ERR_NETWORK, "%s: %s", host,
	    r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r));
}

/* IPv6 and IPv4 alternate, in the order of getaddrinfo within a family. */
static size_t
interleave(struct addrinfo *list, struct addrinfo *out[ATTEMPTS_MAX])
{
	struct addrinfo *a, *b;
	size_t n = 0;
	int family = list->ai_family;

	a = list;
	for (b = list; b != NULL && b->ai_family == family; b = b->ai_next)
		;
	while (n < ATTEMPTS_MAX && (a != NULL || b != NULL)) {
		if (a != NULL) {
			out[n++] = a;
			do
				a = a->ai_next;
			while (a != NULL && a->ai_family != family);
		}
		if (b != NULL && n < ATTEMPTS_MAX) {
			out[n++] = b;
			do
				b = b->ai_next;
			while (b != NULL && b->ai_family == family);
		}
	}
	return n;
}

/*
 * A connection in IDLE is silent for minutes; behind a NAT that forgot it, the
 * kernel must find out (L091).
 */
static void
set_options(int fd)
{
	int on = 1, idle = 60, interval = 20, count = 4, timeout = 120000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout,
	    sizeof(timeout));
}

struct race {
	struct addrinfo *targets[ATTEMPTS_MAX];
	struct pollfd fds[ATTEMPTS_MAX]; /* fd -1: failed */
	size_t n_targets, n_started, n_running;
	int last_errno;
};

/* Returns the descriptor when it was connected at once, else -1. */
static int
start_next(struct race *race)
{
	struct addrinfo *ai = race->targets[race->n_started];
	struct pollfd *slot = &race->fds[race->n_started++];

	slot->events = POLLOUT;
	slot->fd = socket(ai->ai_family,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, ai->ai_protocol);
	if (slot->fd == -1) {
		race->last_errno = errno;
		return -1;
	}
	set_options(slot->fd);
	if (connect(slot->fd, ai->ai_addr, ai->ai_addrlen) == 0)
		return slot->fd;
	if (errno == EINPROGRESS) {
		race->n_running++;
		return -1;
	}
	race->last_errno = errno;
	close(slot->fd);
	slot->fd = -1;
	return -1;
}

/* The descriptor that connected, or -1. */
static int
look_at_running(struct race *race)
{
	size_t i;

	for (i = 0; i < race->n_started; i++) {
		struct pollfd *slot = &race->fds[i];
		socklen_t len = sizeof(int);
		int error = 0;

		if (slot->fd == -1 || slot->revents == 0)
			continue;
		if (getsockopt(slot->fd, SOL_SOCKET, SO_ERROR, &error,
			&len) == -1)
			error = errno;
		if (error == 0)
			return slot->fd;
		race->last_errno = error;
		close(slot->fd);
		slot->fd = -1;
		race->n_running--;
	}
	return -1;
}

static int
run_race(struct race *race, int64_t deadline, net_may_go_on *may_go_on,
    void *arg, struct err *err)
{
	int64_t now = clock_mono_msecs(), next = now, wait;
	int fd;

	for (;;) {
		if (now >= deadline) {
			race->last_errno = ETIMEDOUT;
			return -1;
		}
		if (may_go_on != NULL && may_go_on(arg, err) == -1)
			return -2;
		if (race->n_started < race->n_targets &&
		    (now >= next || race->n_running == 0)) {
			if ((fd = start_next(race)) != -1)
				return fd;
			next = now + NEXT_ATTEMPT_MSECS;
			continue;
		}
		if (race->n_running == 0)
			return -1;
		wait = deadline - now;
		if (race->n_started < race->n_targets && next - now < wait)
			wait = next - now;
		if (wait > SLICE_MSECS)
			wait = SLICE_MSECS;
		if (poll(race->fds, race->n_started, (int)wait) > 0 &&
		    (fd = look_at_running(race)) != -1)
			return fd;
		now = clock_mono_msecs();
	}
}

int
net_connect(const char *host, uint16_t port, int64_t deadline_mono_msecs,
    net_may_go_on *may_go_on, void *arg, int *fd_r, struct err *err)
{
	struct race race = { .last_errno = ENETUNREACH };
	struct addrinfo *list;
	size_t i;
	int fd;

	if (resolve(host, port, &list, err) == -1)
		return -1;
	race.n_targets = interleave(list, race.targets);
	fd = run_race(&race, deadline_mono_msecs, may_go_on, arg, err);
	for (i = 0; i < race.n_started; i++)
		if (race.fds[i].fd != -1 && race.fds[i].fd != fd)
			close(race.fds[i].fd);
	freeaddrinfo(list);
	if (fd == -2)
		return -1;
	if (fd == -1)
		return err_set(err, ERR_NETWORK, "%s port %u: %s", host, port,
		    strerror(race.last_errno));
	*fd_r = fd;
	return 0;
}
