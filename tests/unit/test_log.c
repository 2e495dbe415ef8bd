/*
 * test_log.c - a log that nobody reads holds nobody up.
 *
 * Each test is a process of its own (Check forks), so it may do with standard
 * error what it likes; one that waits runs into Check's time limit.
 */
#include "base/log.h"
#include "base/sink.h"

#include <check.h>

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MANY 20000 /* lines, more than any pipe or socket holds */

static void
log_many(void)
{
	int i;

	for (i = 0; i < MANY; i++)
		log_info(NULL, "line %d of many, as long as lines are", i);
}

/* All that can be read now. */
static size_t
read_all(int fd, char *out, size_t size)
{
	size_t len = 0;
	ssize_t n;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (len < size - 1 && (n = read(fd, out + len,
		size - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = '\0';
	return len;
}

/* Lines are whole, and those that are missing were counted. */
static void
check_read(int fd)
{
	static char text[4 << 20];
	const char *line, *said;
	unsigned long long n_lost;
	size_t n_lines = 0;

	read_all(fd, text, sizeof(text));
	for (line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
		ck_assert_ptr_nonnull(strchr(line, '\n'));
		n_lines++;
	}
	ck_assert_uint_gt(n_lines, 10);
	ck_assert_uint_eq(log_lost(), MANY - n_lines);
	log_info(NULL, "somebody reads again");
	read_all(fd, text, sizeof(text));
	said = strstr(text, " lines of this process were lost");
	ck_assert_ptr_nonnull(said);
	while (said > text && said[-1] != ' ')
		said--;
	n_lost = strtoull(said, NULL, 10);
	ck_assert_uint_eq(n_lost, log_lost());
	ck_assert_ptr_nonnull(strstr(said, "somebody reads again"));
	/* and only once */
	log_info(NULL, "another");
	read_all(fd, text, sizeof(text));
	ck_assert_ptr_null(strstr(text, "were lost"));
}

START_TEST(a_full_pipe_costs_lines_and_stays_blocking_for_others)
{
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	log_open("test", LOG_TARGET_STDERR);
	log_never_wait();
	log_many();
	/* of who started us */
	ck_assert_int_eq(fcntl(fds[1], F_GETFL) & O_NONBLOCK, 0);
	check_read(fds[0]);
}
END_TEST

START_TEST(a_stopped_terminal_costs_lines)
{
	int master, slave;

	ck_assert_int_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
	dup2(slave, STDERR_FILENO);
	log_open("test", LOG_TARGET_STDERR);
	log_never_wait();
	log_many();
	ck_assert_int_eq(fcntl(slave, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_uint_gt(log_lost(), 0);
}
END_TEST

START_TEST(a_socket_nobody_reads_costs_lines)
{
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	dup2(fds[1], STDERR_FILENO);
	log_open("test", LOG_TARGET_JOURNAL);
	log_never_wait();
	log_many();
	ck_assert_int_eq(fcntl(fds[1], F_GETFL) & O_NONBLOCK, 0);
	check_read(fds[0]);
}
END_TEST

START_TEST(a_reader_that_is_gone_costs_lines)
{
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	log_open("test", LOG_TARGET_STDERR);
	log_never_wait();
	close(fds[0]);
	log_many();
	ck_assert_uint_eq(log_lost(), MANY);
}
END_TEST

static const char *
own_path(const char *name)
{
	static char path[108];
	char dir[] = "/tmp/test_log.XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void
remove_path(const char *path)
{
	char dir[108];

	unlink(path);
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path),
	    path);
	rmdir(dir);
}

START_TEST(a_fifo_without_reader_is_no_log)
{
	const char *path = own_path("fifo");

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(log_set_file(path), -1);
	ck_assert_int_eq(errno, ENXIO);
	remove_path(path);
}
END_TEST

static int
listen_at(const char *path, int type)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	unlink(path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	if (type == SOCK_STREAM)
		ck_assert_int_eq(listen(fd, 1), 0);
	return fd;
}

START_TEST(syslogd_that_is_stuck_costs_lines_and_is_found_again)
{
	const char *path = own_path("log");
	int fd = listen_at(path, SOCK_DGRAM);
	char text[4096];

	log_open("test", LOG_TARGET_SYSLOG);
	sink_set_syslog(path);
	log_many();
	ck_assert_uint_gt(log_lost(), 0);
	ck_assert_int_gt(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), 0);
	ck_assert_msg(strncmp(text, "<22>", 4) == 0, "%s", text);
	close(fd);
	log_info(NULL, "nobody is there");
	fd = listen_at(path, SOCK_DGRAM);
	log_info(NULL, "a new one");
	ck_assert_int_gt(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), 0);
	ck_assert_ptr_nonnull(strstr(text, "were lost"));
	memset(text, 0, sizeof(text));
	ck_assert_int_gt(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), 0);
	ck_assert_ptr_nonnull(strstr(text, "]: a new one"));
	remove_path(path);
}
END_TEST

START_TEST(syslogd_may_listen_on_a_stream)
{
	const char *path = own_path("log");
	int fd = listen_at(path, SOCK_STREAM), peer;
	static char text[4 << 20];
	size_t len;

	log_open("test", LOG_TARGET_SYSLOG);
	sink_set_syslog(path);
	peer = accept(fd, NULL, NULL);
	ck_assert_int_ne(peer, -1);
	log_info(NULL, "a line");
	len = read_all(peer, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "]: a line"));
	ck_assert_uint_eq(len, strlen(text) + 1);
	log_many();
	ck_assert_uint_gt(log_lost(), 0);
	remove_path(path);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("log");
	TCase *tc = tcase_create("log");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 20);
	tcase_add_test(tc,
	    a_full_pipe_costs_lines_and_stays_blocking_for_others);
	tcase_add_test(tc, a_stopped_terminal_costs_lines);
	tcase_add_test(tc, a_socket_nobody_reads_costs_lines);
	tcase_add_test(tc, a_reader_that_is_gone_costs_lines);
	tcase_add_test(tc, a_fifo_without_reader_is_no_log);
	tcase_add_test(tc,
	    syslogd_that_is_stuck_costs_lines_and_is_found_again);
	tcase_add_test(tc, syslogd_may_listen_on_a_stream);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
