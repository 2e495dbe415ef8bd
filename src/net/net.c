/*
 * net.c - a TCP connection to a mail server, within a deadline.
 *
 * Runs in: hot, pool and job children.  Blocks, within a deadline.
 *
 * Every address that might work gets its chance early (RFC 8305): a dead IPv6
 * path costs a quarter second, not a timeout.
 */
#define _GNU_SOURCE
#include "net/net.h"

#include "base/clock.h"
#include "base/xmem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
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

	/* Two tries for each of the (at most three) name servers: what is not
	 * answered then will not be (resolv.conf(5)). */
	setenv("RES_OPTIONS", "timeout:3 attempts:2", 0);
	if (getaddrinfo("localhost", "imap", &hints, &list) == 0)
		freeaddrinfo(list);
}

/* --- names --------------------------------------------------------------- */

/*
 * getaddrinfo knows no deadline, and what nsswitch.conf names may take for
 * ever.  So a thread of the C library asks, and when the time is over it is
 * left alone with what it works on.
 */
struct lookup {
	char host[NET_HOST_SIZE];
	char service[8];
	struct addrinfo hints;
	struct gaicb request;
};

static int
lookup_wait(struct lookup *l, const struct net_wait *wait, struct err *err)
{
	const struct gaicb *list[1] = { &l->request };
	struct timespec slice;
	int64_t left;

	while (gai_error(&l->request) == EAI_INPROGRESS) {
		left = wait->deadline_mono_msecs - clock_mono_msecs();
		if (left <= 0)
			return err_set(err, ERR_NETWORK, "%s: no answer to "
			    "the name lookup in time", l->host);
		if (wait->may_go_on != NULL &&
		    wait->may_go_on(wait->arg, err) == -1)
			return -1;
		if (left > SLICE_MSECS)
			left = SLICE_MSECS;
		slice = (struct timespec){ .tv_sec = left / 1000,
			.tv_nsec = left % 1000 * 1000000 };
		gai_suspend(list, 1, &slice);
	}
	return 0;
}

static int
describe_lookup(const char *host, int code, struct err *err)
{
	return err_set(err, ERR_NETWORK, "%s: %s", host,
	    code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code));
}

static int
net_lookup(const char *host, uint16_t port, const struct net_wait *wait,
    struct addrinfo **list_r, struct err *err)
{
	struct lookup *l = xcalloc(1, sizeof(*l));
	struct gaicb *requests[1] = { &l->request };
	int code, rv;

	snprintf(l->host, sizeof(l->host), "%s", host);
	snprintf(l->service, sizeof(l->service), "%u", port);
	l->hints = (struct addrinfo){ .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM, .ai_flags = AI_IDN };
	l->request = (struct gaicb){ .ar_name = l->host,
		.ar_service = l->service, .ar_request = &l->hints };
	code = getaddrinfo_a(GAI_NOWAIT, requests, 1, NULL);
	rv = code != 0 ? describe_lookup(host, code, err) :
			 lookup_wait(l, wait, err);
	if (rv == -1 && code == 0 &&
	    gai_cancel(&l->request) == EAI_NOTCANCELED)
		return -1; /* it is the thread's now */
	code = gai_error(&l->request);
	if (rv == 0 && code != 0)
		rv = describe_lookup(host, code, err);
	if (rv == 0)
		*list_r = l->request.ar_result;
	free(l);
	return rv;
}

/* An address is no question to anybody. */
static int
net_net_resolve(const char *host, uint16_t port, const struct net_wait *wait,
    struct addrinfo **list_r, struct err *err)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST };
	char service[8];
	int code;

	if (!net_is_address(host))
		return net_lookup(host, port, wait, list_r, err);
	snprintf(service, sizeof(service), "%u", port);
	code = getaddrinfo(host, service, &hints, list_r);
	return code == 0 ? 0 : describe_lookup(host, code, err);
}

/* --- addresses ----------------------------------------------------------- */

struct net_targets {
	char host[NET_HOST_SIZE];
	uint16_t port;
	struct addrinfo *list;
	struct addrinfo *left[ATTEMPTS_MAX];
	size_t n_left;
	struct addrinfo *connected; /* the last */
};

/* IPv6 and IPv4 alternate, in the order of getaddrinfo within a family. */
static size_t
net_interleave(struct addrinfo *list, struct addrinfo *out[ATTEMPTS_MAX])
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

int
net_resolve(const char *host, uint16_t port, const struct net_wait *wait,
    struct net_targets **targets_r, struct err *err)
{
	struct net_targets *t;
	struct addrinfo *list;

	if (net_net_resolve(host, port, wait, &list, err) == -1)
		return -1;
	t = xcalloc(1, sizeof(*t));
	snprintf(t->host, sizeof(t->host), "%s", host);
	t->port = port;
	t->list = list;
	t->n_left = net_interleave(list, t->left);
	*targets_r = t;
	return 0;
}

void
net_targets_free(struct net_targets **targets)
{
	if (*targets == NULL)
		return;
	freeaddrinfo((*targets)->list);
	free(*targets);
	*targets = NULL;
}

size_t
net_targets_left(const struct net_targets *targets)
{
	return targets->n_left;
}

void
net_targets_put_back(struct net_targets *t)
{
	if (t->connected == NULL || t->n_left == ATTEMPTS_MAX)
		return;
	memmove(t->left + 1, t->left, t->n_left * sizeof(t->left[0]));
	t->left[0] = t->connected;
	t->n_left++;
	t->connected = NULL;
}

/* --- connecting ---------------------------------------------------------- */

struct race {
	struct addrinfo **targets;
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

/* The descriptor that won, -1: none did, -2: err is set. */
static int
run_race(struct race *race, const struct net_wait *w, struct err *err)
{
	int64_t now = clock_mono_msecs(), next = now, wait;
	int fd;

	for (;;) {
		if (now >= w->deadline_mono_msecs) {
			race->last_errno = ETIMEDOUT;
			return -1;
		}
		if (w->may_go_on != NULL && w->may_go_on(w->arg, err) == -1)
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
		wait = w->deadline_mono_msecs - now;
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

/* The winner, and who has failed, have had their chance; who was only slower
 * has not. */
static void
strike_out(struct net_targets *t, const struct race *race, int winner)
{
	size_t i, n = 0;

	for (i = 0; i < t->n_left; i++) {
		bool is_tried = i < race->n_started &&
		    (race->fds[i].fd == -1 || race->fds[i].fd == winner);

		if (i < race->n_started && race->fds[i].fd != -1 &&
		    race->fds[i].fd != winner)
			close(race->fds[i].fd);
		if (!is_tried)
			t->left[n++] = t->left[i];
		else if (winner >= 0 && race->fds[i].fd == winner)
			t->connected = t->left[i];
	}
	t->n_left = n;
}

int
net_connect(struct net_targets *targets, const struct net_wait *wait,
    int *fd_r, struct err *err)
{
	struct race race = { .targets = targets->left,
		.n_targets = targets->n_left, .last_errno = ENETUNREACH };
	int fd = run_race(&race, wait, err);

	strike_out(targets, &race, fd);
	if (fd == -2)
		return -1;
	if (fd == -1)
		return err_set(err, ERR_NETWORK, "%s port %u: %s",
		    targets->host, targets->port, strerror(race.last_errno));
	*fd_r = fd;
	return 0;
}
