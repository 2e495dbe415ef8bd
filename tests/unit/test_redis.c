/*
 * test_redis.c - the connection that comes back, over TCP, with a password,
 * a database number and a prefix; scripts and subscriptions across restarts.
 */
#include "base/clock.h"
#include "base/log.h"
#include "conf/conf.h"
#include "lease/bell.h"
#include "redis/events.h"
#include "lease/hints.h"
#include "redis/redis.h"

#include <arpa/inet.h>
#include <check.h>
#include <event2/event.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64], address[64];
static char good_password[] = "open sesame", bad_password[] = "wrong";
static char prefix[] = "p:";
static struct conf conf;
static int port;
static pid_t server;
static struct event_base *base;
static unsigned ups, downs;

static int
free_port(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	getsockname(fd, (struct sockaddr *)&in, &len);
	close(fd);
	return ntohs(in.sin_port);
}

static void
start_server(void)
{
	char text[12];
	int null;

	snprintf(text, sizeof(text), "%d", port);
	server = fork();
	if (server != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	null = open("/dev/null", O_RDWR);
	dup2(null, 1);
	dup2(null, 2);
	execlp("redis-server", "redis-server", "--port", text, "--bind",
	    "127.0.0.1", "--requirepass", good_password, "--save", "", "--dir",
	    directory, (char *)NULL);
	_exit(127);
}

static void
end_server(void)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
}

static void
on_up(void *arg)
{
	(void)arg;
	ups++;
}

static void
on_down(void *arg)
{
	(void)arg;
	downs++;
}

static struct redis *
connect_to(const char *spec, int64_t answer_msecs)
{
	conf.redis = (char *)(uintptr_t)spec;
	return redis_new(&(struct redis_params){ .base = base, .conf = &conf,
	    .name = "test", .answer_msecs = answer_msecs, .on_up = on_up,
	    .on_down = on_down });
}

static void
setup(void)
{
	snprintf(directory, sizeof(directory), "/tmp/mailherd-redis-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	log_set_level(LOG_LEVEL_ERROR);
	base = event_base_new();
	port = free_port();
	conf = (struct conf){ .redis_password = good_password,
		.redis_db = 3, .redis_prefix = prefix };
	snprintf(address, sizeof(address), "127.0.0.1:%d", port);
	ups = downs = 0;
	start_server();
}

static void
teardown(void)
{
	end_server();
	event_base_free(base);
	rmdir(directory);
}

#define TURN_UNTIL(condition)                                             \
	do {                                                              \
		int64_t until_ = clock_mono_msecs() + 60000;              \
		while (!(condition)) {                                    \
			struct timeval tv_ = { 0, 20000 };                \
			ck_assert_msg(clock_mono_msecs() < until_,        \
			    "waited too long: %s", #condition);           \
			event_base_loopexit(base, &tv_);                  \
			event_base_dispatch(base);                        \
		}                                                         \
	} while (0)

static char said[256];
static unsigned answers;

static void
on_said(void *arg, const struct redisReply *reply)
{
	(void)arg;
	answers++;
	if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
		snprintf(said, sizeof(said), "%lld", reply->integer);
	else
		snprintf(said, sizeof(said), "%s", redis_describe(reply));
}

static const char *
say(struct redis *redis, const char *command)
{
	unsigned before = answers;

	ck_assert_int_eq(redis_send(redis, on_said, NULL, command), 0);
	TURN_UNTIL(answers > before);
	return said;
}

START_TEST(tcp_password_database_and_prefix)
{
	struct redis *redis = connect_to(address, 5000);
	struct uuid id;

	uuid_generate(&id);
	TURN_UNTIL(redis_is_up(redis));
	ck_assert_int_eq(bell_ring(redis, "bulk", &id, 1), 0);
	ck_assert_str_eq(say(redis, "LLEN p:jobs:bulk"), "1");
	/* What waits already is not put there twice. */
	ck_assert_int_eq(bell_ring(redis, "bulk", &id, 1), 0);
	ck_assert_str_eq(say(redis, "LLEN p:jobs:bulk"), "1");
	ck_assert_str_eq(say(redis, "SELECT 0"), "OK");
	ck_assert_str_eq(say(redis, "DBSIZE"), "0");
	redis_free(&redis);
}
END_TEST

static void
on_job(void *arg, const struct uuid *id)
{
	struct uuid *popped = arg;

	*popped = *id;
}

static bool
has_room(void *arg)
{
	return uuid_is_null(arg);
}

/* Whatever waits, a bell costs the same; it rings once for who waits, and again
 * for who was popped. */
START_TEST(a_bell_costs_the_same_however_many_wait)
{
	enum { MANY = 100000 };
	struct redis *redis = connect_to(address, 20000);
	struct uuid popped = { .bytes = { 0 } }, *ids = calloc(MANY,
	    sizeof(*ids));
	struct bell *bell;
	redisContext *outsider;
	redisReply *told;
	const char *at;
	int i;

	for (i = 0; i < MANY; i++)
		uuid_generate(&ids[i]);
	TURN_UNTIL(redis_is_up(redis));
	outsider = redisConnect("127.0.0.1", port);
	freeReplyObject(redisCommand(outsider, "AUTH %s", good_password));
	ck_assert_int_eq(bell_ring(redis, "bulk", ids, MANY), 0);
	ck_assert_str_eq(say(redis, "LLEN p:jobs:bulk"), "100000");
	say(redis, "CONFIG RESETSTAT");
	for (i = 0; i < 10; i++)
		bell_ring(redis, "bulk", ids + 200 * i, 200);
	ck_assert_str_eq(say(redis, "LLEN p:jobs:bulk"), "100000");
	told = redisCommand(outsider, "INFO commandstats");
	at = strstr(told->str, "cmdstat_evalsha:");
	ck_assert_ptr_nonnull(at);
	at = strstr(at, "usec_per_call=") + strlen("usec_per_call=");
	/* by LPOS it was 350 ms; by Redis's own clock */
	ck_assert_int_lt(strtol(at, NULL, 10), 20000);
	freeReplyObject(told);
	redisFree(outsider);
	bell = bell_new(&(struct bell_params){ .base = base, .conf = &conf,
	    .queue = "bulk", .has_room = has_room, .on_job = on_job,
	    .arg = &popped });
	TURN_UNTIL(!uuid_is_null(&popped));
	ck_assert(uuid_is_equal(&popped, &ids[0]));
	TURN_UNTIL(strcmp(say(redis, "ZCARD p:jobs:bulk:rung"), "99999") == 0);
	bell_ring(redis, "bulk", ids, 1);
	ck_assert_str_eq(say(redis, "LLEN p:jobs:bulk"), "100000");
	/* Who popped the last ones has died with them. */
	say(redis, "DEL p:jobs:bulk");
	bell_ring(redis, "bulk", ids, 200);
	ck_assert_str_eq(say(redis, "LLEN p:jobs:bulk"), "200");
	bell_free(&bell);
	redis_free(&redis);
	free(ids);
}
END_TEST

START_TEST(a_name_is_resolved_without_waiting)
{
	char spec[64];
	struct redis *redis;

	snprintf(spec, sizeof(spec), "localhost:%d", port);
	redis = connect_to(spec, 5000);
	TURN_UNTIL(redis_is_up(redis));
	redis_free(&redis);
}
END_TEST

START_TEST(wrong_password_is_not_up)
{
	struct redis *redis;
	int64_t until = clock_mono_msecs() + 1500;

	conf.redis_password = bad_password;
	redis = connect_to(address, 5000);
	TURN_UNTIL(clock_mono_msecs() > until);
	ck_assert(!redis_is_up(redis));
	ck_assert_uint_eq(ups, 0);
	ck_assert_int_eq(redis_send(redis, on_said, NULL, "PING"), -1);
	redis_free(&redis);
}
END_TEST

START_TEST(nobody_there_then_there)
{
	struct redis *redis;

	end_server();
	redis = connect_to(address, 5000);
	TURN_UNTIL(!redis_is_up(redis));
	start_server();
	TURN_UNTIL(redis_is_up(redis));
	end_server();
	TURN_UNTIL(downs == 1);
	start_server();
	TURN_UNTIL(ups == 2);
	redis_free(&redis);
}
END_TEST

START_TEST(pending_commands_are_told_of_the_loss)
{
	struct redis *redis = connect_to(address, 1000);

	TURN_UNTIL(redis_is_up(redis));
	kill(server, SIGSTOP);
	answers = 0;
	ck_assert_int_eq(redis_send(redis, on_said, NULL, "PING"), 0);
	ck_assert_int_eq(redis_send(redis, on_said, NULL, "PING"), 0);
	TURN_UNTIL(downs == 1);
	ck_assert_uint_eq(answers, 2);
	ck_assert_str_eq(said, "no answer");
	kill(server, SIGCONT);
	TURN_UNTIL(ups == 2);
	redis_free(&redis);
}
END_TEST

static struct redis_script script = {
	.name = "test", .source = "return KEYS[1] .. ARGV[1]",
};

static const char *
run_script(struct redis *redis)
{
	static const char *const args[] = { "key", "arg" };
	unsigned before = answers;

	ck_assert_int_eq(redis_eval(redis, &script, on_said, NULL, 1, args, 2),
	    0);
	TURN_UNTIL(answers > before);
	return said;
}

/* Greets, reads no further until it is told to, and tells whether what was
 * sent before the connection was given up arrives after all. */
static _Noreturn void
be_slow_server(int listener, int go)
{
	static char text[1 << 16];
	char told, tail[8] = "";
	int fd = accept(listener, NULL, NULL);
	ssize_t n;

	while (strstr(text, "PING") == NULL)
		if (recv(fd, text + strlen(text), 1000, 0) <= 0)
			_exit(3);
	if (write(fd, "+OK\r\n+OK\r\n+PONG\r\n", 17) != 17 ||
	    read(go, &told, 1) != 1)
		_exit(4);
	while ((n = recv(fd, text, sizeof(text), 0)) > 0)
		snprintf(tail, sizeof(tail), "%.*s", n > 7 ? 7 : (int)n,
		    text + (n > 7 ? n - 7 : 0));
	_exit(strcmp(tail, "LEASE\r\n") == 0 ? 1 : 0);
}

START_TEST(what_was_sent_dies_with_a_connection_that_is_given_up)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	static char much[150000];
	int small = 4096, go[2], status = -1;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct redis *redis;
	pid_t pid;

	end_server();
	in.sin_port = htons((uint16_t)free_port());
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&in, sizeof(in)),
	    0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(pipe(go), 0);
	pid = fork();
	if (pid == 0)
		be_slow_server(listener, go[0]);
	close(listener);
	snprintf(address, sizeof(address), "127.0.0.1:%d", ntohs(in.sin_port));
	redis = connect_to(address, 1000);
	TURN_UNTIL(ups == 1);
	memset(much, 'x', sizeof(much) - 1);
	redis_send(redis, NULL, NULL, "ECHO %s", much);
	redis_send(redis, NULL, NULL, "RELEASE");
	TURN_UNTIL(downs == 1);
	ck_assert_int_eq(write(go[1], "g", 1), 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	redis_free(&redis);
	start_server();
}
END_TEST

START_TEST(script_survives_a_flush)
{
	struct redis *redis = connect_to(address, 5000);

	TURN_UNTIL(redis_is_up(redis));
	ck_assert_str_eq(run_script(redis), "keyarg");
	TURN_UNTIL(script.sha[0] != '\0');
	ck_assert_str_eq(run_script(redis), "keyarg");
	ck_assert_str_eq(say(redis, "SCRIPT FLUSH"), "OK");
	ck_assert_str_eq(run_script(redis), "keyarg");
	redis_free(&redis);
}
END_TEST

static char heard[2048];
static unsigned n_heard;

static void
on_message(void *arg, const char *text, size_t len)
{
	(void)arg;
	n_heard++;
	snprintf(heard, sizeof(heard), "%.*s", (int)len, text);
}

START_TEST(subscription_comes_back_after_a_restart)
{
	static const char *const channels[] = { "events:user.active" };
	struct msg_event event = { .event = EVENT_USER_ACTIVE }, back;
	struct redis *listener = connect_to(address, 5000);
	struct redis *speaker = connect_to(address, 5000);
	struct err err = ERR_INIT;

	uuid_generate(&event.user_id);
	redis_subscribe(listener, channels, 1, on_message, NULL);
	TURN_UNTIL(ups == 2);
	TURN_UNTIL((hints_publish(speaker, &event), n_heard > 0));
	ck_assert_int_eq(event_parse(heard, strlen(heard), &back, &err), 0);
	ck_assert(uuid_is_equal(&back.user_id, &event.user_id));
	end_server();
	TURN_UNTIL(downs == 2);
	start_server();
	TURN_UNTIL(ups == 4);
	n_heard = 0;
	TURN_UNTIL((hints_publish(speaker, &event), n_heard > 0));
	redis_free(&listener);
	redis_free(&speaker);
}
END_TEST

static struct hints got;
static unsigned n_got;

static void
on_hints(void *arg, const struct uuid *id, const struct hints *hints)
{
	(void)arg;
	(void)id;
	got = *hints;
	n_got++;
}

START_TEST(hints_of_any_type_do_no_harm)
{
	struct redis *redis = connect_to(address, 5000);
	struct uuid account, user;
	char command[128], text[UUID_TEXT_SIZE];

	uuid_generate(&account);
	uuid_generate(&user);
	TURN_UNTIL(redis_is_up(redis));
	hints_write_tier(redis, &account, "cold");
	hints_write_pin(redis, &account, "hot");
	snprintf(command, sizeof(command), "SET p:sess:active:%s x EX 60",
	    uuid_format(&user, text));
	say(redis, command);
	hints_ask(redis, &account, &user, 1, on_hints, NULL);
	TURN_UNTIL(n_got == 1);
	ck_assert_str_eq(got.tier, "cold");
	ck_assert_str_eq(got.pin, "hot");
	ck_assert_int_gt(got.session_msecs, 50000);
	/* somebody wrote a list there, and something long */
	uuid_format(&account, text);
	snprintf(command, sizeof(command), "DEL p:sync:tier:%s", text);
	say(redis, command);
	snprintf(command, sizeof(command), "LPUSH p:sync:tier:%s x", text);
	say(redis, command);
	hints_write_pin(redis, &account, "a very long text indeed");
	hints_ask(redis, &account, &user, 1, on_hints, NULL);
	TURN_UNTIL(n_got == 2);
	ck_assert_str_eq(got.tier, "");
	ck_assert_str_eq(got.pin, "a very ");
	redis_free(&redis);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("redis");
	TCase *tc = tcase_create("redis");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 200);
	tcase_add_test(tc, tcp_password_database_and_prefix);
	tcase_add_test(tc, a_bell_costs_the_same_however_many_wait);
	tcase_add_test(tc, a_name_is_resolved_without_waiting);
	tcase_add_test(tc, wrong_password_is_not_up);
	tcase_add_test(tc, nobody_there_then_there);
	tcase_add_test(tc, pending_commands_are_told_of_the_loss);
	tcase_add_test(tc,
	    what_was_sent_dies_with_a_connection_that_is_given_up);
	tcase_add_test(tc, script_survives_a_flush);
	tcase_add_test(tc, subscription_comes_back_after_a_restart);
	tcase_add_test(tc, hints_of_any_type_do_no_harm);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
