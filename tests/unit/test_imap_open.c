/*
 * test_imap_open.c - names with several addresses, and names that nobody
 * looks up in time (F-D4).
 *
 * This program is its own resolver: the C library's functions are replaced by
 * those below.  Each server shows one behaviour until it is ended.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "imap/imap.h"

#include <check.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ADDRESSES_MAX 3

/* --- the resolver -------------------------------------------------------- */

static unsigned n_addresses; /* 127.0.0.1 and those after it; 0: silence */

static struct addrinfo *
make_address(unsigned last, uint16_t port)
{
	struct addrinfo *ai = calloc(1,
	    sizeof(*ai) + sizeof(struct sockaddr_in));
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)(ai + 1);

	*in = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK + last) };
	ai->ai_family = AF_INET;
	ai->ai_socktype = SOCK_STREAM;
	ai->ai_addr = (struct sockaddr *)in;
	ai->ai_addrlen = sizeof(*in);
	return ai;
}

int
getaddrinfo_a(int mode, struct gaicb **list, int n, struct sigevent *sig)
{
	uint16_t port = (uint16_t)strtoul(list[0]->ar_service, NULL,
	    10);
	struct addrinfo **end = &list[0]->ar_result;
	unsigned i;

	(void)mode;
	(void)sig;
	ck_assert_int_eq(n, 1);
	for (i = 0; i < n_addresses; i++) {
		*end = make_address(i, port);
		end = &(*end)->ai_next;
	}
	return 0;
}

int
gai_error(struct gaicb *request)
{
	(void)request;
	return n_addresses > 0 ? 0 : EAI_INPROGRESS;
}

int
gai_suspend(const struct gaicb *const list[], int n,
    const struct timespec *patience)
{
	(void)list;
	(void)n;
	poll(NULL, 0, (int)(patience->tv_sec * 1000 +
		patience->tv_nsec / 1000000));
	return EAI_AGAIN;
}

int
gai_cancel(struct gaicb *request)
{
	(void)request;
	return EAI_CANCELED;
}

/* --- the servers --------------------------------------------------------- */

enum manner { GOOD, SILENT, BYE, HANGS_UP, CHATTERS, ABSENT };

static pid_t servers[ADDRESSES_MAX];

static void
say(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) == -1)
		_exit(0);
}

static void
behave(int fd, enum manner manner)
{
	char line[1000];
	ssize_t n;

	if (manner == HANGS_UP)
		return;
	if (manner == BYE)
		say(fd, "* BYE too many connections\r\n");
	if (manner == CHATTERS)
		say(fd, "HTTP/1.1 400 Bad Request\r\n");
	if (manner == GOOD)
		say(fd, "* OK [CAPABILITY IMAP4rev1] hi\r\n");
	while ((n = read(fd, line, sizeof(line) - 1)) > 0) {
		char answer[100];

		line[n] = '\0';
		snprintf(answer, sizeof(answer),
		    "%ld OK [CAPABILITY IMAP4rev1] done\r\n",
		    strtol(line, NULL, 10));
		if (manner == GOOD)
			say(fd, answer);
	}
}

static int
listen_at(unsigned last, uint16_t *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_port = htons(*port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK + last) };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&addr, len) == -1 ||
	    listen(fd, 5) == -1 ||
	    getsockname(fd, (struct sockaddr *)&addr, &len) == -1)
		ck_abort_msg("no server at 127.0.0.%u port %u", last + 1,
		    *port);
	*port = ntohs(addr.sin_port);
	return fd;
}

static uint16_t
start_servers(const enum manner *manners, unsigned n)
{
	uint16_t port = 0;
	unsigned i;

	n_addresses = n;
	for (i = 0; i < n; i++) {
		int fd, listener;

		if (manners[i] == ABSENT)
			continue;
		listener = listen_at(i, &port);
		if ((servers[i] = fork()) == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			signal(SIGPIPE, SIG_IGN);
			for (;;) {
				fd = accept(listener, NULL, NULL);
				behave(fd, manners[i]);
				close(fd);
			}
		}
		close(listener);
	}
	return port;
}

static void
end_servers(void)
{
	unsigned i;

	for (i = 0; i < ADDRESSES_MAX; i++) {
		if (servers[i] <= 0)
			continue;
		kill(servers[i], SIGKILL);
		waitpid(servers[i], NULL, 0);
		servers[i] = 0;
	}
}

/* --- tests --------------------------------------------------------------- */

static struct err err;
static int64_t took_msecs;

static int
try(uint16_t port)
{
	struct imap_params params = { .host = "mail.test", .port = port,
		.tls = TLS_NONE, .login = "ann", .password = "secret",
		.connect_msecs = 2000, .command_msecs = 20000,
		.max_line = 65536, .max_literal = 65536,
		.max_reply = 1 << 20 };
	int64_t begin = clock_mono_msecs();
	struct imap *r;
	int result;

	err = (struct err)ERR_INIT;
	result = imap_open(&r, &params, &err);
	took_msecs = clock_mono_msecs() - begin;
	imap_close(&r);
	return result;
}

static const struct {
	unsigned n;
	enum manner manners[ADDRESSES_MAX];
	enum err_kind kind; /* ERR_NONE: it is reached */
} names[] = {
	{ 2, { SILENT, GOOD }, ERR_NONE },
	{ 2, { BYE, GOOD }, ERR_NONE },
	{ 2, { HANGS_UP, GOOD }, ERR_NONE },
	{ 2, { CHATTERS, GOOD }, ERR_NONE },
	{ 3, { SILENT, ABSENT, GOOD }, ERR_NONE },
	{ 3, { SILENT, BYE, GOOD }, ERR_NONE },
	{ 3, { GOOD, SILENT, SILENT }, ERR_NONE },
	{ 1, { SILENT }, ERR_DEADLINE },
	{ 1, { BYE }, ERR_THROTTLED },
	{ 2, { HANGS_UP, BYE }, ERR_THROTTLED },
	{ 2, { BYE, ABSENT }, ERR_THROTTLED },
	{ 2, { SILENT, SILENT }, ERR_DEADLINE },
};

START_TEST(another_address_is_tried_while_time_lasts)
{
	uint16_t port = start_servers(names[_i].manners, names[_i].n);

	ck_assert_int_eq(try(port), names[_i].kind == ERR_NONE ? 0 : -1);
	ck_assert_msg(err.kind == names[_i].kind, "%s: %s",
	    err_kind_name(err.kind), err.text);
	/* Time for a slow machine, not for a time-out each. */
	if (names[_i].kind != ERR_NONE)
		ck_assert_int_lt(took_msecs, 3500);
	end_servers();
}
END_TEST

START_TEST(a_name_nobody_looks_up_ends_at_the_deadline)
{
	n_addresses = 0;
	ck_assert_int_eq(try(143), -1);
	ck_assert_int_eq(err.kind, ERR_NETWORK);
	ck_assert_ptr_nonnull(strstr(err.text, "mail.test: no answer to the "
	    "name lookup"));
	ck_assert_int_ge(took_msecs, 1900);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("imap open");
	TCase *t = tcase_create("addresses");
	SRunner *runner;
	int failed;

	signal(SIGPIPE, SIG_IGN);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, another_address_is_tried_while_time_lasts, 0,
	    (int)(sizeof(names) / sizeof(names[0])));
	tcase_add_test(t, a_name_nobody_looks_up_ends_at_the_deadline);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
