/*
 * test_keeper.c - leases on a private Redis, without a master: many of them,
 * two owners that compete, and a Redis others have written nonsense into.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/xmem.h"
#include "lease/idmap.h"
#include "lease/keeper.h"
#include "lease/redis.h"

#include <check.h>
#include <event2/event.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 10000

static char directory[64], spec[96], worker_ids[2][40];
static char no_text[] = "";
static struct conf conf;
static pid_t server;
static redisContext *outsider;
static struct event_base *base;

struct owner {
	struct redis *redis;
	struct keeper *keeper;
	struct idmap owned;
	unsigned lost, expired, shed, reconciles;
	bool is_closed; /* claims nothing */
};
static struct owner owners[2];

/* --- callbacks ---------------------------------------------------------- */

static bool
may_claim(void *arg)
{
	return !((struct owner *)arg)->is_closed;
}

static void
on_won(void *arg, const struct uuid *id, int64_t deadline)
{
	struct owner *owner = arg;

	ck_assert_int_gt(deadline, clock_boot_msecs());
	ck_assert_ptr_null(idmap_put(&owner->owned, id, IDMAP_PRESENT));
}

static void
on_renewed(void *arg, const struct uuid *id, int64_t deadline)
{
	struct owner *owner = arg;

	ck_assert_int_gt(deadline, clock_boot_msecs());
	ck_assert_ptr_nonnull(idmap_get(&owner->owned, id));
}

static void
on_lost(void *arg, const struct uuid *ids, size_t n, enum lease_end how)
{
	struct owner *owner = arg;
	size_t i;

	for (i = 0; i < n; i++) {
		owner->lost++;
		owner->expired += how == LEASE_EXPIRED;
		ck_assert_ptr_nonnull(idmap_remove(&owner->owned, &ids[i]));
	}
}

static void
on_shed(void *arg, size_t n)
{
	struct owner *owner = arg;
	const struct uuid *found;
	struct uuid id;
	size_t at;

	for (; n > 0; n--) {
		at = 0;
		idmap_next(&owner->owned, &at, &found);
		id = *found;
		idmap_remove(&owner->owned, &id);
		keeper_release(owner->keeper, &id, 60000);
		owner->shed++;
	}
}

static void
on_reconcile(void *arg)
{
	((struct owner *)arg)->reconciles++;
}

static char *
describe(void *arg)
{
	(void)arg;
	return xstrdup("{\"owned\":1}");
}

static void
on_up(void *arg)
{
	keeper_redis_up(((struct owner *)arg)->keeper);
}

static void
on_down(void *arg)
{
	keeper_redis_down(((struct owner *)arg)->keeper);
}

static struct owner *
start_owner(unsigned i)
{
	struct owner *owner = &owners[i];

	snprintf(worker_ids[i], sizeof(worker_ids[i]), "test%u:%d:%08u", i,
	    getpid(), i);
	owner->redis = redis_new(&(struct redis_params){ .base = base,
	    .conf = &conf, .name = "test", .answer_msecs = 5000,
	    .on_up = on_up, .on_down = on_down, .arg = owner });
	owner->keeper = keeper_new(&(struct keeper_params){ .base = base,
	    .redis = owner->redis, .conf = &conf,
	    .worker_id = worker_ids[i], .may_claim = may_claim,
	    .on_won = on_won, .on_renewed = on_renewed, .on_lost = on_lost,
	    .on_shed = on_shed, .on_reconcile = on_reconcile,
	    .describe = describe, .arg = owner });
	return owner;
}

/* --- stage -------------------------------------------------------------- */

static long long
ask(const char *fmt, ...)
{
	redisReply *reply;
	long long n = -1;
	va_list ap;

	va_start(ap, fmt);
	reply = redisvCommand(outsider, fmt, ap);
	va_end(ap);
	ck_assert_ptr_nonnull(reply);
	if (reply->type == REDIS_REPLY_INTEGER)
		n = reply->integer;
	freeReplyObject(reply);
	return n;
}

static void
add_live(unsigned n)
{
	char text[UUID_TEXT_SIZE];
	void *reply;
	struct uuid id;
	unsigned i;

	for (i = 0; i < n; i++) {
		uuid_generate(&id);
		redisAppendCommand(outsider, "SADD sync:live %s",
		    uuid_format(&id, text));
	}
	for (i = 0; i < n; i++) {
		ck_assert_int_eq(redisGetReply(outsider, &reply), REDIS_OK);
		freeReplyObject(reply);
	}
}

static void
setup(void)
{
	char path[96];
	int null;

	snprintf(directory, sizeof(directory), "/tmp/mailherd-keeper-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/sock", directory);
	snprintf(spec, sizeof(spec), "unix:%s", path);
	log_set_level(LOG_LEVEL_ERROR);
	server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		null = open("/dev/null", O_RDWR);
		dup2(null, 1);
		dup2(null, 2);
		execlp("redis-server", "redis-server", "--port", "0",
		    "--unixsocket", path, "--save", "", "--dir", directory,
		    (char *)NULL);
		_exit(127);
	}
	for (int64_t until = clock_mono_msecs() + 10000;;) {
		outsider = redisConnectUnix(path);
		if (outsider->err == 0)
			break;
		redisFree(outsider);
		ck_assert_msg(clock_mono_msecs() < until, "no redis-server");
		usleep(10000); /* until it listens */
	}
	conf = (struct conf){ .redis = spec, .redis_password = no_text,
		.redis_prefix = no_text, .max_accounts_per_worker = MANY,
		.lease_ttl = 30, .lease_renew = 1, .claim_interval = 1,
		.heartbeat_interval = 1, .heartbeat_ttl = 5,
		.rebalance_interval = 1, .reconcile_interval = 3600 };
	memset(owners, 0, sizeof(owners));
	base = event_base_new();
}

static void
teardown(void)
{
	char path[96];
	unsigned i;

	for (i = 0; i < 2; i++) {
		redis_free(&owners[i].redis);
		keeper_free(&owners[i].keeper);
		idmap_release(&owners[i].owned);
	}
	event_base_free(base);
	redisFree(outsider);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	snprintf(path, sizeof(path), "%s/sock", directory);
	unlink(path);
	rmdir(directory);
}

/* The busiest turn of the loop, in CPU time: other load does not count. */
static int64_t longest_turn;

static int64_t
cpu_msecs(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void
turn(void)
{
	struct timeval tv = { 0, 10000 };
	int64_t before = cpu_msecs();

	event_base_loopexit(base, &tv);
	event_base_dispatch(base);
	if (cpu_msecs() - before > longest_turn)
		longest_turn = cpu_msecs() - before;
}

#define TURN_UNTIL(condition)                                             \
	do {                                                              \
		int64_t until_ = clock_mono_msecs() + 100000;              \
		while (!(condition)) {                                    \
			ck_assert_msg(clock_mono_msecs() < until_,        \
			    "waited too long: %s", #condition);           \
			turn();                                           \
		}                                                         \
	} while (0)

/* --- tests -------------------------------------------------------------- */

/* R-LEASE-4: the bound is a stall that would be seen, not a benchmark. */
START_TEST(ten_thousand_leases_do_not_stall_the_loop)
{
	struct owner *a = start_owner(0);
	int64_t until;

	add_live(MANY);
	ck_assert_int_eq(ask("SCARD sync:live"), MANY);
	TURN_UNTIL(keeper_count(a->keeper) == MANY);
	longest_turn = 0;
	until = clock_mono_msecs() + 3000; /* renewals of all in it */
	TURN_UNTIL(clock_mono_msecs() > until);
	ck_assert_int_lt(longest_turn, 1000);
	ck_assert_uint_eq(a->lost, 0);
	ck_assert_uint_eq(a->owned.n, MANY);
}
END_TEST

/* R-LEASE-3, R-LEASE-9 */
START_TEST(two_owners_share_without_a_moment_of_both)
{
	struct owner *a = start_owner(0), *b = start_owner(1);
	const struct uuid *id;
	size_t at;

	add_live(500);
	TURN_UNTIL(a->owned.n + b->owned.n == 500);
	for (at = 0; idmap_next(&a->owned, &at, &id) != NULL;)
		ck_assert_ptr_null(idmap_get(&b->owned, id));
	TURN_UNTIL(a->owned.n <= 305 && b->owned.n <= 305 &&
	    a->owned.n + b->owned.n == 500);
	ck_assert_uint_eq(a->lost + b->lost, 0);
}
END_TEST

START_TEST(stolen_leases_are_told_one_by_one)
{
	struct owner *a = start_owner(0);
	char text[UUID_TEXT_SIZE];
	const struct uuid *id;
	size_t at = 0, i;

	add_live(500);
	TURN_UNTIL(a->owned.n == 500);
	a->is_closed = true;
	for (i = 0; i < 7; i++) {
		idmap_next(&a->owned, &at, &id);
		ask("SET sync:lease:%s thief", uuid_format(id, text));
	}
	TURN_UNTIL(a->lost == 7);
	ck_assert_uint_eq(a->expired, 0);
	ck_assert_uint_eq(keeper_count(a->keeper), 493);
}
END_TEST

START_TEST(released_lease_is_left_to_others)
{
	struct owner *a = start_owner(0), *b;
	const struct uuid *found;
	struct uuid id;
	size_t at = 0;

	add_live(500);
	TURN_UNTIL(a->owned.n == 500);
	idmap_next(&a->owned, &at, &found);
	id = *found;
	idmap_remove(&a->owned, &id);
	keeper_release(a->keeper, &id, 60000);
	b = start_owner(1);
	TURN_UNTIL(idmap_get(&b->owned, &id) != NULL);
	ck_assert_uint_eq(a->lost, 0);
}
END_TEST

/* A stop: every lease is free for others at once. */
START_TEST(all_are_released_by_their_owner_only)
{
	struct owner *a = start_owner(0);
	char text[UUID_TEXT_SIZE];
	const struct uuid *found;
	struct uuid id, stolen;
	size_t at = 0;

	add_live(500);
	TURN_UNTIL(a->owned.n == 500);
	keeper_stop(a->keeper);
	idmap_next(&a->owned, &at, &found);
	stolen = *found;
	ask("SET sync:lease:%s thief", uuid_format(&stolen, text));
	while (a->owned.n > 0) {
		at = 0;
		idmap_next(&a->owned, &at, &found);
		id = *found;
		idmap_remove(&a->owned, &id);
		keeper_release(a->keeper, &id, 0);
	}
	TURN_UNTIL(keeper_is_quiet(a->keeper));
	/* sync:live, sync:era, sync:boot:..., the stolen one */
	ck_assert_int_eq(ask("DBSIZE"), 4);
	ck_assert_int_eq(ask("EXISTS sync:lease:%s", uuid_format(&stolen,
	    text)), 1);
}
END_TEST

/* R-LEASE-1 */
START_TEST(reconcile_adds_and_removes_ids)
{
	struct owner *a = start_owner(0);
	char text[UUID_TEXT_SIZE];
	struct uuid ids[3];
	unsigned i;

	add_live(500); /* that PostgreSQL does not know */
	a->is_closed = true;
	for (i = 0; i < 3; i++)
		uuid_generate(&ids[i]);
	ask("SADD sync:live %s", uuid_format(&ids[0], text));
	TURN_UNTIL(a->reconciles == 1);
	/* becomes live after the set was read: must stay */
	keeper_set_live(a->keeper, &ids[2], true);
	keeper_live_ids(a->keeper, ids, 2);
	keeper_live_end(a->keeper, true);
	TURN_UNTIL(ask("SCARD sync:live") == 3);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(ask("SISMEMBER sync:live %s",
		    uuid_format(&ids[i], text)), 1);
	/* an incomplete answer changes nothing */
	keeper_redis_up(a->keeper);
	TURN_UNTIL(a->reconciles == 2);
	keeper_live_end(a->keeper, false);
	turn();
	ck_assert_int_eq(ask("SCARD sync:live"), 3);
}
END_TEST

START_TEST(nonsense_in_redis_costs_only_itself)
{
	struct owner *a = start_owner(0);
	char text[UUID_TEXT_SIZE];
	struct uuid id;

	uuid_generate(&id);
	ask("SADD sync:live nonsense %s %s", "", uuid_format(&id, text));
	ask("LPUSH sync:lease:%s x", text);
	add_live(500);
	TURN_UNTIL(a->owned.n == 500);
	turn();
	ck_assert_ptr_null(idmap_get(&a->owned, &id));
	/* a set that is none */
	ask("DEL sync:live");
	ask("SET sync:live x");
	TURN_UNTIL(ask("EXISTS sync:workers") == 1);
	turn();
	ck_assert_uint_eq(a->owned.n, 500);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("keeper");
	TCase *tc = tcase_create("keeper");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 200);
	tcase_add_test(tc, ten_thousand_leases_do_not_stall_the_loop);
	tcase_add_test(tc, two_owners_share_without_a_moment_of_both);
	tcase_add_test(tc, stolen_leases_are_told_one_by_one);
	tcase_add_test(tc, released_lease_is_left_to_others);
	tcase_add_test(tc, all_are_released_by_their_owner_only);
	tcase_add_test(tc, reconcile_adds_and_removes_ids);
	tcase_add_test(tc, nonsense_in_redis_costs_only_itself);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
