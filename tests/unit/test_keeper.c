/*
 * test_keeper.c - leases on a private Redis, without a master: many of them,
 * two owners that compete, a Redis that hangs, is wiped or comes back with an
 * old snapshot, and one others have written nonsense into.
 *
 * Whatever happens, no account is won while the other owner holds it.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/xmem.h"
#include "lease/conns.h"
#include "lease/heartbeat.h"
#include "lease/idmap.h"
#include "lease/keeper.h"
#include "redis/redis.h"

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
	unsigned lost, expired, shed, reconciles, unlisted;
	char which[UUID_TEXT_SIZE]; /* was not listed */
	bool is_closed; /* claims nothing */
	unsigned closes_after; /* so many times asked whether it may */
};
static struct owner owners[2];
static unsigned n_both; /* won while the other had it */
/* What PostgreSQL says when it is asked; NULL: the test answers by hand. */
static struct uuid *live_ids;
static size_t n_live_ids;

/* --- callbacks ---------------------------------------------------------- */

static bool
may_claim(void *arg)
{
	struct owner *owner = arg;

	if (owner->closes_after > 0 && --owner->closes_after == 0)
		owner->is_closed = true;
	return !owner->is_closed;
}

static void
on_won(void *arg, const struct uuid *id, int64_t deadline)
{
	struct owner *owner = arg;

	ck_assert_int_gt(deadline, clock_boot_msecs());
	n_both += idmap_get(&owners[owner == &owners[0]].owned, id) != NULL;
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
on_unlisted(void *arg, const struct uuid *id)
{
	struct owner *owner = arg;

	owner->unlisted++;
	uuid_format(id, owner->which);
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
	struct owner *owner = arg;

	owner->reconciles++;
	if (live_ids == NULL)
		return;
	keeper_live_ids(owner->keeper, live_ids, n_live_ids);
	keeper_live_end(owner->keeper, true);
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
	    .on_shed = on_shed, .on_reconcile = on_reconcile, .on_unlisted = on_unlisted,
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
start_server(void)
{
	char path[96];
	int null;

	snprintf(path, sizeof(path), "%s/sock", directory);
	snprintf(spec, sizeof(spec), "unix:%s", path);
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
		if (outsider->err == 0 && ask("PING") == -1)
			break;
		redisFree(outsider);
		ck_assert_msg(clock_mono_msecs() < until, "no redis-server");
		usleep(10000); /* until it listens */
	}
}

static void
stop_server(void)
{
	redisFree(outsider);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
}

static void
setup(void)
{
	snprintf(directory, sizeof(directory), "/tmp/mailherd-keeper-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	log_set_level(LOG_LEVEL_ERROR);
	start_server();
	conf = (struct conf){ .redis = spec, .redis_password = no_text,
		.redis_prefix = no_text, .max_accounts_per_worker = MANY,
		.lease_ttl = 30, .lease_renew = 1, .claim_interval = 1,
		.heartbeat_interval = 1, .heartbeat_ttl = 5,
		.rebalance_interval = 1, .reconcile_interval = 3600 };
	memset(owners, 0, sizeof(owners));
	n_both = 0;
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
	stop_server();
	snprintf(path, sizeof(path), "%s/sock", directory);
	unlink(path);
	snprintf(path, sizeof(path), "%s/dump.rdb", directory);
	unlink(path);
	rmdir(directory);
	ck_assert_uint_eq(n_both, 0);
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

static const struct uuid *
any_owned(const struct owner *owner)
{
	const struct uuid *id = NULL;
	size_t at = 0;

	ck_assert_ptr_nonnull(idmap_next(&owner->owned, &at, &id));
	return id;
}

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
	ask("DEL sync:turn");
	ask("DEL sync:reconcile");
	/* sync:live, sync:era, sync:boot:..., sync:holders, sync:orphans, the
	 * stolen one */
	ck_assert_int_eq(ask("DBSIZE"), 6);
	ck_assert_int_eq(ask("SCARD sync:orphans"), 499);
	ck_assert_int_eq(ask("EXISTS sync:lease:%s", uuid_format(&stolen,
	    text)), 1);
}
END_TEST

/* All ids are read by one worker; the other looks after its own. */
START_TEST(one_worker_reconciles_for_all)
{
	struct owner *a, *b, *other;
	unsigned before;
	char text[UUID_TEXT_SIZE];
	const struct uuid *gone;

	conf.reconcile_interval = 4;
	add_live(300);
	a = start_owner(0);
	TURN_UNTIL(a->reconciles == 1);
	b = start_owner(1);
	TURN_UNTIL(a->owned.n + b->owned.n == 300 && b->owned.n > 100);
	ck_assert_uint_eq(b->reconciles, 0);
	keeper_live_end(a->keeper, false);
	/* At its next interval, whoever does not reconcile hears of it. */
	before = a->reconciles + b->reconciles;
	TURN_UNTIL(a->reconciles + b->reconciles > before);
	other = b->reconciles > 0 ? a : b;
	gone = any_owned(other);
	ask("SREM sync:live %s", uuid_format(gone, text));
	TURN_UNTIL(other->unlisted > 0);
	ck_assert_str_eq(other->which, text);
	ck_assert_uint_eq(a->lost + b->lost, 0);
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
	/* begun anew before the answer: half of that is no answer to this */
	keeper_redis_up(a->keeper);
	TURN_UNTIL(a->reconciles == 2);
	keeper_live_ids(a->keeper, ids, 1);
	keeper_live_end(a->keeper, true);
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
	TURN_UNTIL(a->reconciles == 3);
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

/* --- a Redis that loses its memory (R-LEASE-11) ------------------------- */

START_TEST(wiped_redis_heals_without_a_moment_of_both)
{
	struct owner *a = start_owner(0), *b = start_owner(1);
	struct uuid *ids = xcalloc(500, sizeof(*ids));
	const struct uuid *id;
	size_t at, n = 0;

	add_live(500);
	TURN_UNTIL(a->owned.n + b->owned.n == 500);
	for (at = 0; idmap_next(&a->owned, &at, &id) != NULL;)
		ids[n++] = *id;
	for (at = 0; idmap_next(&b->owned, &at, &id) != NULL;)
		ids[n++] = *id;
	keeper_live_end(a->keeper, false); /* of the beginning */
	keeper_live_end(b->keeper, false);
	live_ids = ids;
	n_live_ids = n;
	ask("FLUSHALL");
	TURN_UNTIL(a->lost + b->lost == 500);
	TURN_UNTIL(a->owned.n + b->owned.n == 500);
	ck_assert_uint_eq(a->expired + b->expired, 0);
	live_ids = NULL;
	free(ids);
}
END_TEST

/* The snapshot says that a has the account; since then it went to b. */
START_TEST(lease_that_comes_back_from_an_old_snapshot_is_nobodys)
{
	struct owner *a = start_owner(0), *b;
	const struct uuid *found;
	struct uuid id;
	size_t at = 0;
	int64_t until;

	conf.lease_ttl = 10;
	add_live(1);
	TURN_UNTIL(a->owned.n == 1);
	idmap_next(&a->owned, &at, &found);
	id = *found;
	ask("SAVE");
	idmap_remove(&a->owned, &id);
	keeper_release(a->keeper, &id, 1);
	b = start_owner(1);
	a->is_closed = true;
	TURN_UNTIL(b->owned.n == 1);
	a->is_closed = false;
	stop_server();
	start_server();
	ck_assert_int_eq(ask("EXISTS sync:lease:%s", uuid_format(&id,
	    (char[UUID_TEXT_SIZE]){ 0 })), 1);
	TURN_UNTIL(b->lost == 1); /* fenced: the key has a's name */
	ck_assert_uint_eq(b->expired, 0);
	TURN_UNTIL(a->owned.n + b->owned.n == 1);
	until = clock_mono_msecs() + 1500; /* a renewal later it still is */
	TURN_UNTIL(clock_mono_msecs() > until);
	ck_assert_uint_eq(a->owned.n + b->owned.n, 1);
	ck_assert_uint_eq(a->lost, 0);
}
END_TEST

/* R-LEASE-11: less than the TTL disturbs nothing. */
START_TEST(redis_that_hangs_for_less_than_the_ttl_disturbs_nothing)
{
	struct owner *a = start_owner(0);
	int64_t until;

	add_live(100);
	TURN_UNTIL(a->owned.n == 100);
	kill(server, SIGSTOP);
	until = clock_mono_msecs() + 3000;
	TURN_UNTIL(clock_mono_msecs() > until);
	kill(server, SIGCONT);
	until = clock_mono_msecs() + 2000;
	TURN_UNTIL(clock_mono_msecs() > until);
	ck_assert_uint_eq(a->lost, 0);
	ck_assert_uint_eq(a->owned.n, 100);
}
END_TEST

/* R-LEASE-5, R-LEASE-11: and the answers that come after that save nobody. */
START_TEST(redis_that_hangs_for_longer_costs_all_before_the_ttl)
{
	struct owner *a = start_owner(0);
	int64_t stopped;

	conf.lease_ttl = 5;
	add_live(100);
	TURN_UNTIL(a->owned.n == 100);
	kill(server, SIGSTOP);
	stopped = clock_mono_msecs();
	TURN_UNTIL(a->lost == 100);
	ck_assert_int_lt(clock_mono_msecs() - stopped, 5000);
	ck_assert_uint_eq(a->expired, 100);
	ck_assert_uint_eq(keeper_count(a->keeper), 0);
	kill(server, SIGCONT);
	TURN_UNTIL(a->owned.n == 100); /* claimed again, without a restart */
}
END_TEST

/* A reload that makes lease_ttl shorter; what counts is what was sent. */
START_TEST(a_shorter_ttl_brings_the_deadlines_nearer)
{
	struct owner *a = start_owner(0);
	int64_t stopped;

	add_live(100);
	TURN_UNTIL(a->owned.n == 100);
	kill(server, SIGSTOP);
	stopped = clock_mono_msecs();
	conf.lease_ttl = 5;
	/* renewed within a second, and the answer does not come */
	TURN_UNTIL(a->lost == 100);
	ck_assert_int_lt(clock_mono_msecs() - stopped, 9000);
	ck_assert_uint_eq(a->expired, 100);
	kill(server, SIGCONT);
	TURN_UNTIL(a->owned.n == 100);
	/* and away again, with the next renewal that is answered */
	conf.lease_ttl = 30;
	TURN_UNTIL(keeper_lease_left(a->keeper, any_owned(a)) > 20000);
	ck_assert_uint_eq(a->lost, 100);
}
END_TEST

/* --- a dead master of this host (R-LEASE-10) ---------------------------- */

static void
add_leases_of(const char *owner, unsigned n)
{
	char text[UUID_TEXT_SIZE];
	struct uuid id;
	unsigned i;

	for (i = 0; i < n; i++) {
		uuid_generate(&id);
		ask("SADD sync:live %s", uuid_format(&id, text));
		ask("SET sync:lease:%s %s EX 1000", text, owner);
	}
}

static pid_t
dead_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

START_TEST(leases_of_a_dead_master_of_this_host_are_inherited)
{
	char dead[64], elsewhere[64], alive[64];
	struct owner *a;

	snprintf(dead, sizeof(dead), "test0:%d:dead", (int)dead_pid());
	snprintf(elsewhere, sizeof(elsewhere), "test0:%d:else",
	    (int)dead_pid());
	snprintf(alive, sizeof(alive), "test0:%d:alive", (int)getppid());
	add_leases_of(dead, 300);
	add_leases_of(elsewhere, 5); /* of another boot */
	add_leases_of(alive, 5);
	ask("SET sync:boot:%s %s", dead, heartbeat_boot());
	ask("SET sync:boot:%s other", elsewhere);
	ask("SET sync:boot:%s %s", alive, heartbeat_boot());
	/* still counted as alive: the share would be half of it */
	ask("ZADD sync:workers 99999999999 %s", dead);
	a = start_owner(0);
	TURN_UNTIL(a->owned.n == 300);
	TURN_UNTIL(keeper_workers(a->keeper) == 1);
	turn();
	ck_assert_uint_eq(a->owned.n, 300);
}
END_TEST

START_TEST(who_does_not_know_the_boot_inherits_nothing)
{
	char one[HEARTBEAT_BOOT_SIZE], other[HEARTBEAT_BOOT_SIZE];
	char path[96];
	FILE *f;

	/* masked, as some containers do it */
	heartbeat_read_boot("/nonexistent", "/proc/self/ns/pid", one);
	heartbeat_read_boot("/nonexistent", "/proc/self/ns/pid", other);
	ck_assert_str_ne(one, other);
	heartbeat_read_boot("/dev/null", "/proc/self/ns/pid", one);
	ck_assert_str_ne(one, other);
	/* all zeros are no boot id either */
	snprintf(path, sizeof(path), "%s/boot", directory);
	f = fopen(path, "w");
	fputs("00000000-0000-0000-0000-000000000000\n", f);
	fclose(f);
	heartbeat_read_boot(path, "/proc/self/ns/pid", one);
	heartbeat_read_boot(path, "/proc/self/ns/pid", other);
	ck_assert_str_ne(one, other);
	f = fopen(path, "w");
	fputs("6f9a0f43-3d5b-4a51-9d5e-3d1f3c9ad9b1\n", f);
	fclose(f);
	heartbeat_read_boot(path, "/nonexistent", one);
	heartbeat_read_boot(path, "/nonexistent", other);
	ck_assert_str_ne(one, other);
	heartbeat_read_boot(path, "/proc/self/ns/pid", one);
	heartbeat_read_boot(path, "/proc/self/ns/pid", other);
	ck_assert_str_eq(one, other);
	unlink(path);
}
END_TEST

/* --- shares (R-LEASE-3) ------------------------------------------------- */

START_TEST(what_nobody_takes_for_two_rounds_is_taken_beyond_the_share)
{
	struct owner *a;

	add_live(100);
	ask("ZADD sync:workers 99999999999 idle");
	a = start_owner(0);
	TURN_UNTIL(a->owned.n > 0);
	ck_assert_uint_eq(a->owned.n, 56); /* share_claim */
	TURN_UNTIL(a->owned.n == 100);
}
END_TEST

/* --- looking at all accounts, in turn ----------------------------------- */

static void
new_id(struct uuid *id, const char *set, const char *other_set)
{
	char text[UUID_TEXT_SIZE];

	uuid_generate(id);
	uuid_format(id, text);
	ask("SADD %s %s", set, text);
	if (other_set != NULL)
		ask("SADD %s %s", other_set, text);
}

START_TEST(who_has_not_the_turn_takes_what_others_have_found)
{
	struct owner *a = start_owner(0);
	struct uuid found, unseen, dead;

	add_live(1);
	TURN_UNTIL(a->owned.n == 1);
	ask("SET sync:turn other EX 1000");
	new_id(&found, "sync:live", "sync:orphans");
	TURN_UNTIL(idmap_get(&a->owned, &found) != NULL);
	/* From here on rounds that began before are over. */
	new_id(&dead, "sync:orphans", NULL);
	new_id(&unseen, "sync:live", NULL);
	new_id(&found, "sync:live", "sync:orphans");
	TURN_UNTIL(idmap_get(&a->owned, &found) != NULL);
	TURN_UNTIL(ask("SCARD sync:orphans") == 0);
	ck_assert_ptr_null(idmap_get(&a->owned, &unseen));
	ck_assert_ptr_null(idmap_get(&a->owned, &dead));
	ask("DEL sync:turn");
	TURN_UNTIL(idmap_get(&a->owned, &unseen) != NULL);
}
END_TEST

START_TEST(what_a_dead_worker_has_is_found_before_it_is_free)
{
	add_leases_of("else:1:dead", 5);
	start_owner(0);
	TURN_UNTIL(ask("SCARD sync:orphans") == 5);
	/* It was only cut off. */
	ask("SET sync:workers:else:1:dead {} EX 1000");
	TURN_UNTIL(ask("EXISTS sync:orphans") == 0);
	ck_assert_uint_eq(owners[0].owned.n, 0);
}
END_TEST

/* Wherever the stop comes, nothing is left behind in Redis. */
START_TEST(what_is_won_while_stopping_is_released)
{
	struct owner *a = &owners[0];
	const struct uuid *found;
	struct uuid id;
	size_t at;

	add_live(500);
	for (unsigned calls = 1; calls < 12; calls += 3) {
		start_owner(0);
		a->closes_after = calls + 2;
		a->is_closed = false;
		TURN_UNTIL(a->is_closed);
		keeper_stop(a->keeper);
		while (a->owned.n > 0) {
			at = 0;
			idmap_next(&a->owned, &at, &found);
			id = *found;
			idmap_remove(&a->owned, &id);
			keeper_release(a->keeper, &id, 0);
		}
		TURN_UNTIL(keeper_is_quiet(a->keeper));
		ck_assert_int_eq(ask("EVAL %s 0",
		    "return #redis.call('keys', 'sync:lease:*')"), 0);
		redis_free(&a->redis);
		keeper_free(&a->keeper);
		idmap_release(&a->owned);
		memset(a, 0, sizeof(*a));
	}
}
END_TEST

/* --- connections (R-CONN-1) --------------------------------------------- */

static size_t conn_cap; /* of the server; 0: the usual number */
static int granted[20]; /* by tag: 0 no answer, 1 yes, -1 no */

static void
on_conn(void *arg, uint64_t tag, bool is_granted)
{
	(void)arg;
	granted[tag] = is_granted ? 1 : -1;
}

static struct conns *
start_conns(struct owner *owner, unsigned i, const char *role)
{
	return conns_new(&(struct conns_params){ .base = base,
	    .redis = owner->redis, .conf = &conf, .role = role,
	    .worker_id = worker_ids[i], .on_answer = on_conn });
}

static int
take(struct conns *conns, const struct uuid *account, uint64_t tag)
{
	granted[tag] = 0;
	conns_take(conns, account, conn_cap, tag);
	TURN_UNTIL(granted[tag] != 0);
	return granted[tag];
}

START_TEST(connections_are_counted_over_workers_and_roles)
{
	struct owner *a = start_owner(0), *b = start_owner(1);
	struct conns *sync, *jobs, *other;
	char key[96];
	struct uuid id;

	TURN_UNTIL(redis_is_up(a->redis) && redis_is_up(b->redis));
	sync = start_conns(a, 0, "sync");
	jobs = start_conns(b, 1, "jobs");
	uuid_generate(&id);
	snprintf(key, sizeof(key), "sync:conns:%s", uuid_format(&id,
	    (char[UUID_TEXT_SIZE]){ 0 }));
	ck_assert_int_eq(take(sync, &id, 1), 1);
	ck_assert_int_eq(take(sync, &id, 2), 1);
	ck_assert_int_eq(take(sync, &id, 3), -1); /* 2 of the sync side */
	ck_assert_int_eq(take(jobs, &id, 4), 1);
	ck_assert_int_eq(take(jobs, &id, 5), 1);
	ck_assert_int_eq(take(jobs, &id, 6), -1); /* 4 in all */
	ck_assert_int_eq(ask("ZCARD %s", key), 4);
	conns_give_back(jobs, 5);
	conns_give_back(sync, 2);
	conn_cap = 2; /* of both sides together */
	ck_assert_int_eq(take(jobs, &id, 11), -1);
	ck_assert_int_eq(take(sync, &id, 12), -1);
	conn_cap = 3;
	ck_assert_int_eq(take(sync, &id, 2), 1);
	conn_cap = 0;
	ck_assert_int_eq(take(jobs, &id, 5), 1);
	ck_assert_int_eq(ask("ZCARD %s", key), 4);
	conns_give_back(sync, 1);
	ck_assert_int_eq(take(jobs, &id, 7), 1);
	/* a new owner: the old one's connections are no more */
	other = start_conns(b, 1, "sync");
	ck_assert_int_eq(take(other, &id, 8), 1);
	ck_assert_int_eq(ask("ZCARD %s", key), 4);
	/* a dead worker's come back by expiry */
	ask("EVAL %s 1 %s", "for _, m in ipairs(redis.call('zrange', KEYS[1],"
	    " 0, -1)) do redis.call('zadd', KEYS[1], 1, m) end", key);
	ck_assert_int_eq(take(jobs, &id, 9), 1);
	ck_assert_int_eq(ask("ZCARD %s", key), 1);
	/* what is held is told again */
	ask("DEL %s", key);
	conns_tell(jobs);
	TURN_UNTIL(ask("ZCARD %s", key) == (int)conns_count(jobs));
	ask("DEL %s", key);
	ask("SET %s nonsense", key);
	ck_assert_int_eq(take(jobs, &id, 10), 1);
	/* without Redis the worker's own budget is all there is */
	redis_free(&a->redis);
	redis_free(&b->redis);
	conns_free(&sync);
	conns_free(&jobs);
	conns_free(&other);
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
	tcase_add_test(tc, one_worker_reconciles_for_all);
	tcase_add_test(tc, reconcile_adds_and_removes_ids);
	tcase_add_test(tc, nonsense_in_redis_costs_only_itself);
	tcase_add_test(tc, wiped_redis_heals_without_a_moment_of_both);
	tcase_add_test(tc,
	    lease_that_comes_back_from_an_old_snapshot_is_nobodys);
	tcase_add_test(tc,
	    redis_that_hangs_for_less_than_the_ttl_disturbs_nothing);
	tcase_add_test(tc,
	    redis_that_hangs_for_longer_costs_all_before_the_ttl);
	tcase_add_test(tc, leases_of_a_dead_master_of_this_host_are_inherited);
	tcase_add_test(tc, who_does_not_know_the_boot_inherits_nothing);
	tcase_add_test(tc, a_shorter_ttl_brings_the_deadlines_nearer);
	tcase_add_test(tc,
	    what_nobody_takes_for_two_rounds_is_taken_beyond_the_share);
	tcase_add_test(tc, who_has_not_the_turn_takes_what_others_have_found);
	tcase_add_test(tc, what_a_dead_worker_has_is_found_before_it_is_free);
	tcase_add_test(tc, what_is_won_while_stopping_is_released);
	tcase_add_test(tc, connections_are_counted_over_workers_and_roles);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
