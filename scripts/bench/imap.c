/*
 * imap.c - how fast and how small an IMAP session is.
 *
 * By hand: tests/with-dovecot ./bench_imap [MESSAGES [BYTES [CHILDREN]]]
 *
 * Prints: a bare socket reader as the yardstick; the same messages through
 * imap_fetch, plain and TLS, with processor time and peak memory; the round
 * trips of a warm poll; PSS and private memory of children idling over TLS.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "imap/imap.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN_MAX 1000

static unsigned n_messages = 20000, message_bytes = 6000, n_children = 50;

static void
fatal(const char *what, const struct err *err)
{
	fprintf(stderr, "%s: %s\n", what, err != NULL ? err->text : "failed");
	exit(1);
}

/* --- the mailbox --------------------------------------------------------- */

static void
fill(const char *user)
{
	static const char line[] = "The quick brown fox jumps over the lazy "
				   "dog, again and again and again.\r\n";
	const char *mail = getenv("MAILHERD_TEST_IMAP_MAIL");
	const char *dirs[] = { "", "/Maildir", "/Maildir/cur",
		"/Maildir/new", "/Maildir/tmp" };
	char path[600];
	struct stat st;
	unsigned i, n;
	FILE *fp;

	if (stat(mail, &st) == -1)
		fatal("stat", NULL);
	for (i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "%s/%s%s", mail, user, dirs[i]);
		if (mkdir(path, 0700) == -1 ||
		    chown(path, st.st_uid, st.st_gid) == -1)
			fatal(path, NULL);
	}
	for (i = 0; i < n_messages; i++) {
		snprintf(path, sizeof(path), "%s/%s/Maildir/cur/%u.b:2,S",
		    mail, user, 1700000000 + i);
		if ((fp = fopen(path, "w")) == NULL)
			fatal(path, NULL);
		fprintf(fp, "Message-ID: <%u@example.org>\r\n\r\n", i);
		for (n = 0; n < message_bytes; n += sizeof(line) - 1)
			fputs(line, fp);
		fclose(fp);
		if (chown(path, st.st_uid, st.st_gid) == -1)
			fatal(path, NULL);
	}
}

/* --- sessions ------------------------------------------------------------ */

static struct imap *
open_session(enum tls_mode tls, const char *user)
{
	struct imap_params params = {
		.host = getenv("MAILHERD_TEST_IMAP_HOST"), .tls = tls,
		.login = user, .password = "secret", .connect_msecs = 30000,
		.command_msecs = 60000, .max_line = 1 << 20,
		.max_literal = 1 << 28 };
	struct err err = ERR_INIT;
	struct imap *r;

	params.port = (uint16_t)strtol(getenv(tls == TLS_IMPLICIT ?
		"MAILHERD_TEST_IMAP_TLS_PORT" : "MAILHERD_TEST_IMAP_PORT"),
	    NULL, 10);
	if (imap_open(&r, &params, &err) == -1)
		fatal("open", &err);
	return r;
}

static void
select_inbox(struct imap *r)
{
	struct imap_selected selected;
	struct err err = ERR_INIT;

	if (imap_select(r, "INBOX", NULL, &selected, NULL, &err) == -1)
		fatal("select", &err);
}

static uint32_t *uids;
static size_t n_uids;
static uint64_t n_bytes, n_bodies;

static int
on_place(void *arg, const struct place *place)
{
	(void)arg;
	if (n_uids < n_messages)
		uids[n_uids++] = place->uid;
	return 0;
}

static int
on_bytes(void *arg, const char *p, size_t len)
{
	(void)arg;
	(void)p;
	n_bytes += len;
	return 0;
}

static int
on_done(void *arg, const struct place *place, bool has_body)
{
	(void)arg;
	(void)place;
	n_bodies += has_body;
	return 0;
}

static long
cpu_msecs(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec * 1000 + u.ru_utime.tv_usec / 1000 +
	    u.ru_stime.tv_sec * 1000 + u.ru_stime.tv_usec / 1000;
}

static void
print_line(const char *what, int64_t msecs, long cpu)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	printf("%-28s %6lld ms %8.0f msg/s %7.1f MB/s  cpu %5ld ms  "
	       "peak %ld kB\n", what, (long long)msecs,
	    n_messages * 1000.0 / (double)msecs,
	    (double)n_bytes / 1e3 / (double)msecs, cpu, u.ru_maxrss);
	fflush(stdout);
}

static void
bench_raw(void)
{
	static char bytes[65536];
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char script[] = "a LOGIN bench secret\r\nb SELECT INBOX\r\n"
			      "c UID FETCH 1:* (UID FLAGS INTERNALDATE "
			      "RFC822.SIZE MODSEQ BODY.PEEK[])\r\nd LOGOUT\r\n";
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int64_t begin = clock_mono_msecs();
	long cpu = cpu_msecs();
	ssize_t n;

	addr.sin_port = htons((uint16_t)strtol(
	    getenv("MAILHERD_TEST_IMAP_PORT"), NULL, 10));
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == -1 ||
	    write(fd, script, sizeof(script) - 1) == -1)
		fatal("raw reader", NULL);
	n_bytes = 0;
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		n_bytes += (uint64_t)n;
	close(fd);
	print_line("bare reader, plain", clock_mono_msecs() - begin,
	    cpu_msecs() - cpu);
}

static void
bench_fetch(enum tls_mode tls, size_t per_command, const char *what)
{
	const struct imap_sink sink = { on_bytes, on_done, NULL, NULL };
	struct err err = ERR_INIT;
	struct imap *r;
	int64_t begin;
	long cpu;

	fflush(stdout);
	if (fork() != 0) { /* each in its own process: peak memory */
		wait(NULL);
		return;
	}
	r = open_session(tls, "bench");
	select_inbox(r);
	uids = calloc(n_messages, sizeof(*uids));
	begin = clock_mono_msecs();
	cpu = cpu_msecs();
	if (imap_scan_uids(r, 1, 0, ITEM_FLAGS | ITEM_MODSEQ, on_place,
		NULL, &err) == -1)
		fatal("scan", &err);
	n_bytes = 0;
	if (per_command == 0) {
		print_line(what, clock_mono_msecs() - begin,
		    cpu_msecs() - cpu);
		_exit(0);
	}
	begin = clock_mono_msecs();
	cpu = cpu_msecs();
	if (imap_fetch(r, uids, n_uids, per_command, &sink, &err) == -1)
		fatal("fetch", &err);
	if (n_bodies != n_messages)
		fatal("bodies are missing", NULL);
	print_line(what, clock_mono_msecs() - begin, cpu_msecs() - cpu);
	imap_close(&r);
	_exit(0);
}

static void
bench_poll(void)
{
	static const char *const wires[] = { "INBOX", "Sent", "Trash" };
	struct imap_status status[3];
	struct imap_stats stats;
	struct err err = ERR_INIT;
	int64_t begin = clock_mono_msecs();
	struct imap *r = open_session(TLS_IMPLICIT, "bench");

	if (imap_status(r, wires, 3, status, &err) == -1)
		fatal("status", &err);
	imap_stats(r, &stats);
	imap_close(&r);
	printf("warm poll, TLS, 3 folders: %llu round trips after the "
	       "greeting, %lld ms\n", (unsigned long long)stats.round_trips,
	    (long long)(clock_mono_msecs() - begin));
}

/* --- idle children ------------------------------------------------------- */

static long
memory_of(pid_t pid, const char *field)
{
	char path[64], line[200];
	long kb = 0, sum = 0;
	FILE *fp;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	if ((fp = fopen(path, "r")) == NULL)
		return -1;
	while (fgets(line, sizeof(line), fp) != NULL)
		if (strncmp(line, field, strlen(field)) == 0 &&
		    sscanf(line + strlen(field), " %ld", &kb) == 1)
			sum += kb;
	fclose(fp);
	return sum;
}

static void
idle_child(int ready_fd, bool is_working)
{
	struct err err = ERR_INIT;
	enum imap_wake wake;
	struct imap *r = open_session(TLS_IMPLICIT, "bench");
	const struct imap_sink sink = { on_bytes, on_done, NULL, NULL };
	int control[2];

	select_inbox(r);
	if (is_working) {
		uids = calloc(n_messages, sizeof(*uids));
		if (imap_scan_uids(r, 1, 0, ITEM_FLAGS, on_place, NULL,
			&err) == -1 ||
		    imap_fetch(r, uids, n_uids < 200 ? n_uids : 200, 0,
			&sink, &err) == -1)
			fatal("work", &err);
		free(uids);
	}
	if (pipe(control) == -1 || write(ready_fd, "x", 1) != 1)
		_exit(1);
	imap_idle(r, control[0], 600000, &wake, &err);
	_exit(0);
}

static int
compare_longs(const void *a, const void *b)
{
	return (*(const long *)a > *(const long *)b) -
	    (*(const long *)a < *(const long *)b);
}

static void
bench_children(bool is_working, const char *what)
{
	static pid_t pids[CHILDREN_MAX];
	static long pss[CHILDREN_MAX], dirty[CHILDREN_MAX];
	int ready[2];
	unsigned i;
	char c;

	if (pipe(ready) == -1)
		fatal("pipe", NULL);
	for (i = 0; i < n_children; i++) {
		fflush(stdout);
		if ((pids[i] = fork()) == 0)
			idle_child(ready[1], is_working);
		if (read(ready[0], &c, 1) != 1)
			fatal("child", NULL);
	}
	poll(NULL, 0, 1000); /* until the last one is in poll(2) */
	for (i = 0; i < n_children; i++) {
		pss[i] = memory_of(pids[i], "Pss:");
		dirty[i] = memory_of(pids[i], "Private_Dirty:");
	}
	for (i = 0; i < n_children; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	qsort(pss, n_children, sizeof(long), compare_longs);
	qsort(dirty, n_children, sizeof(long), compare_longs);
	printf("%u children idling over TLS, %s: PSS median %ld kB, max %ld "
	       "kB; private dirty median %ld kB\n", n_children, what,
	    pss[n_children / 2], pss[n_children - 1], dirty[n_children / 2]);
}

int
main(int argc, char **argv)
{
	struct err err = ERR_INIT;

	if (argc > 1)
		n_messages = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		message_bytes = (unsigned)strtoul(argv[2], NULL, 10);
	if (argc > 3)
		n_children = (unsigned)strtoul(argv[3], NULL, 10);
	if (getenv("MAILHERD_TEST_IMAP_PORT") == NULL ||
	    n_children > CHILDREN_MAX || n_children == 0) {
		fprintf(stderr, "usage: tests/with-dovecot bench_imap "
		    "[MESSAGES [BYTES [CHILDREN]]]\n");
		return 64;
	}
	signal(SIGPIPE, SIG_IGN);
	if (imap_init(getenv("MAILHERD_TEST_IMAP_CA"), &err) == -1)
		fatal("init", &err);
	fill("bench");
	bench_poll(); /* builds Dovecot's index */
	bench_raw();
	bench_raw();
	bench_fetch(TLS_NONE, 0, "flags only, plain");
	bench_fetch(TLS_NONE, 200, "fetch, 200 a command, plain");
	bench_fetch(TLS_NONE, 1000, "fetch, 1000 a command, plain");
	bench_fetch(TLS_IMPLICIT, 200, "fetch, 200 a command, TLS");
	bench_fetch(TLS_IMPLICIT, 1000, "fetch, 1000 a command, TLS");
	bench_poll();
	bench_children(false, "fresh");
	bench_children(true, "after a flag scan and 200 bodies");
	return 0;
}
