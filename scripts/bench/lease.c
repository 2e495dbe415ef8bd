/*
 * lease.c - the real lease code on a real Redis, with many leases.
 *
 * Runs beside a private redis-server, started by scripts/bench/lease:
 *	bench_lease SOCKET
 *
 * Prints "NAME VALUE" a line.  A turn of the loop is timed without its wait:
 * in CPU time, which other load does not change, and by the clock, which it
 * does.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/xmem.h"
#include "lease/bell.h"
#include "lease/idmap.h"
#include "lease/keeper.h"
#include "redis/redis.h"

#include <event2/event.h>
#include <hiredis/hiredis.h>

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LEASES 10000
#define LIVE 50000
#define CHILDREN 250

static struct conf conf;
static struct event_base *base;
static redisContext *outsider;
static struct redis *redis;
static struct keeper *keeper;
static struct uuid *ids; /* LIVE of them */
static bool wants_reconcile;

/* of the turns since reset() */
static double longest_cpu, longest_wall;
static double turn_began, turn_cpu;

static bool all_killed;
static double kill_cpu; /* from the beginning of the turn to the last kill() */

static struct idmap children; /* account: pid */

static double
now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void
reset(void)
{
	longest_cpu = longest_wall = 0;
}

static void
turn(void)
{
	double cpu = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);

	turn_began = wall;
	turn_cpu = cpu;
	event_base_loop(base, EVLOOP_NONBLOCK);
	cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
	wall = now(CLOCK_MONOTONIC) - wall;
	if (cpu > longest_cpu)
		longest_cpu = cpu;
	if (wall > longest_wall)
		longest_wall = wall;
	usleep(100);
}

static void
turn_for(int64_t msecs)
{
	int64_t until = clock_mono_msecs() + msecs;

	while (clock_mono_msecs() < until)
		turn();
}

/* As a master does it, waiting in the loop; CPU time in msecs. */
static double
loop_for(int64_t msecs)
{
	struct timeval tv = { msecs / 1000, 0 };
	double cpu = now(CLOCK_THREAD_CPUTIME_ID);

	event_base_loopexit(base, &tv);
	event_base_dispatch(base);
	return now(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

static void
turn_until_owned(size_t n)
{
	int64_t until = clock_mono_msecs() + 120000;

	while (keeper_count(keeper) != n && clock_mono_msecs() < until)
		turn();
	if (keeper_count(keeper) != n) {
		fprintf(stderr, "%zu leases instead of %zu\n",
		    keeper_count(keeper), n);
		exit(1);
	}
}

static void
print_turns(const char *what)
{
	printf("%s longest turn, CPU ms %.2f\n", what, longest_cpu);
	printf("%s longest turn, clock ms %.2f\n", what, longest_wall);
}

/* --- the master's part -------------------------------------------------- */

static bool
may_claim(void *arg)
{
	(void)arg;
	return true;
}

static void
on_won(void *arg, const struct uuid *id, int64_t deadline)
{
	(void)arg, (void)id, (void)deadline;
}

static int64_t last_renewed;

static void
on_renewed(void *arg, const struct uuid *id, int64_t deadline)
{
	(void)arg, (void)id, (void)deadline;
	last_renewed = clock_mono_msecs();
}

static void
on_lost(void *arg, const struct uuid *lost, size_t n, enum lease_end how)
{
	void *pid;
	size_t i;

	(void)arg, (void)how;
	for (i = 0; i < n; i++) {
		pid = idmap_get(&children, &lost[i]);
		if (pid != NULL)
			kill((pid_t)(intptr_t)pid, SIGKILL);
	}
	kill_cpu = now(CLOCK_THREAD_CPUTIME_ID) - turn_cpu;
	all_killed = true;
}

static void
on_shed(void *arg, size_t n)
{
	(void)arg, (void)n;
}

static void
on_reconcile(void *arg)
{
	(void)arg;
	wants_reconcile = true;
}

static char *
describe(void *arg)
{
	(void)arg;
	return xstrdup("{}");
}

static void
on_up(void *arg)
{
	(void)arg;
	keeper_redis_up(keeper);
}

static void
start_keeper(void)
{
	redis = redis_new(&(struct redis_params){ .base = base,
	    .conf = &conf, .name = "bench", .answer_msecs = 30000,
	    .on_up = on_up });
	keeper = keeper_new(&(struct keeper_params){ .base = base,
	    .redis = redis, .conf = &conf, .worker_id = "bench:1:00000001",
	    .may_claim = may_claim, .on_won = on_won,
	    .on_renewed = on_renewed, .on_lost = on_lost, .on_shed = on_shed,
	    .on_reconcile = on_reconcile, .describe = describe });
}

/* --- Redis -------------------------------------------------------------- */

static void
order(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	redisvAppendCommand(outsider, fmt, ap);
	va_end(ap);
}

static void
await_orders(size_t n)
{
	void *reply;

	for (; n > 0; n--) {
		if (redisGetReply(outsider, &reply) != REDIS_OK) {
			fprintf(stderr, "Redis: %s\n", outsider->errstr);
			exit(1);
		}
		freeReplyObject(reply);
	}
}

static void
add_live(size_t from, size_t to)
{
	char text[UUID_TEXT_SIZE];
	size_t i;

	for (i = from; i < to; i++)
		order("SADD sync:live %s", uuid_format(&ids[i], text));
	await_orders(to - from);
}

/* --- the figures -------------------------------------------------------- */

/* R-LEASE-4, at the cadences of a fresh installation. */
static void
bench_renewal(void)
{
	add_live(0, LEASES);
	start_keeper();
	turn_until_owned(LEASES);
	turn_for(1000);
	reset();
	turn_for(conf.lease_renew * 1000);
	print_turns("renewal");
	printf("renewal CPU %% %.3f\n", loop_for(2 * conf.lease_renew * 1000) /
	    (2 * (double)conf.lease_renew * 1000) * 100);
}

/* R-LEASE-3: each round asks about 40,000 more.  First nobody has them, and
 * they are beyond this worker's share: it remembers them.  Then others do. */
static void
bench_scan(void)
{
	char text[UUID_TEXT_SIZE];
	size_t i;

	for (i = 0; i < 5; i++)
		order("ZADD sync:workers 99999999999 other:%d:0", (int)i);
	await_orders(5);
	add_live(LEASES, LIVE);
	conf.max_accounts_per_worker = LEASES + 1; /* it goes on looking */
	conf.claim_interval = 5;
	conf.claim_jitter = 0;
	reset();
	turn_until_owned(LEASES + 1);
	print_turns("claim scan, 40,000 left over");
	for (i = LEASES; i < LIVE; i++)
		order("SET sync:lease:%s other:1:0 NX EX 3600",
		    uuid_format(&ids[i], text));
	await_orders(LIVE - LEASES);
	conf.max_accounts_per_worker = LIVE;
	reset();
	turn_for(15000);
	print_turns("claim scan");
	printf("claim scan, CPU a round ms %.1f\n", loop_for(15000) / 3);
}

static void
bench_reconcile(void)
{
	size_t i, n;

	reset();
	keeper_redis_up(keeper);
	while (!wants_reconcile)
		turn();
	wants_reconcile = false;
	/* Half of the set is not what PostgreSQL says. */
	for (i = 0; i < LIVE; i++)
		if (i % 2 == 0 && i >= LEASES)
			uuid_generate(&ids[i]);
	for (i = 0; i < LIVE; i += n) {
		n = LIVE - i < 100 ? LIVE - i : 100;
		keeper_live_ids(keeper, &ids[i], n);
		turn();
	}
	keeper_live_end(keeper, true);
	turn_for(3000);
	print_turns("reconcile");
}

/* R-LEASE-5: `n` accounts with a child each lose their lease at once. */
static void
bench_loss(size_t from, size_t n)
{
	char text[UUID_TEXT_SIZE];
	size_t i, left = n;
	double begin;
	pid_t pid;

	for (i = from; i < from + n; i++) {
		pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		idmap_put(&children, &ids[i], (void *)(intptr_t)pid);
	}
	/* Between two renewals, so that the next one hears of all. */
	last_renewed = 0;
	while (last_renewed == 0 || clock_mono_msecs() - last_renewed < 2000)
		turn();
	all_killed = false;
	for (i = from; i < from + n; i++)
		order("SET sync:lease:%s thief", uuid_format(&ids[i], text));
	await_orders(n);
	/* One renewal may take them in several batches: from the first. */
	while (!all_killed)
		turn();
	begin = turn_began;
	while (left > 0) {
		while (left > 0 && waitpid(-1, NULL, WNOHANG) > 0)
			left--;
		if (left > 0)
			turn();
	}
	printf("loss of %zu: heard to SIGKILL sent, CPU ms %.2f\n", n,
	    kill_cpu);
	printf("loss of %zu: heard to all reaped ms %.1f\n", n,
	    now(CLOCK_MONOTONIC) - begin);
}

static int
by_size(const void *va, const void *vb)
{
	double a = *(const double *)va, b = *(const double *)vb;

	return a < b ? -1 : a > b;
}

/* What a bell costs Redis, by its own clock, where many jobs wait already: ten
 * workers ring for 200 each, and then for others. */
static void
bench_bell(void)
{
	static const char find[] = "cmdstat_evalsha:calls=";
	struct redis *redis = redis_new(&(struct redis_params){ .base = base,
	    .conf = &conf, .name = "bench", .answer_msecs = 100000 });
	double began, waited[20];
	redisReply *reply;
	size_t i, n = 2 * LIVE;
	struct uuid *jobs = xcalloc(n + 4000, sizeof(*jobs));
	const char *at;

	for (i = 0; i < n + 4000; i++)
		uuid_generate(&jobs[i]);
	while (!redis_is_up(redis))
		turn();
	bell_ring(redis, "bulk", jobs, n);
	turn_for(3000);
	freeReplyObject(redisCommand(outsider, "CONFIG RESETSTAT"));
	for (i = 0; i < 20; i++) {
		bell_ring(redis, "bulk", i % 2 ? jobs + n + 200 * i :
		    jobs + 200 * i, 200);
		turn();
		began = now(CLOCK_MONOTONIC);
		freeReplyObject(redisCommand(outsider, "PING"));
		waited[i] = now(CLOCK_MONOTONIC) - began;
	}
	turn_for(1000);
	reply = redisCommand(outsider, "INFO commandstats");
	at = strstr(reply->str, find);
	if (at != NULL && (at = strstr(at, "usec_per_call=")) != NULL)
		printf("bell for 200, 100,000 queued: Redis ms %.2f\n",
		    strtod(at + strlen("usec_per_call="), NULL) / 1000);
	freeReplyObject(reply);
	qsort(waited, 20, sizeof(waited[0]), by_size);
	printf("PING beside ringing workers, median ms %.2f\n", waited[10]);
	printf("PING beside ringing workers, longest ms %.2f\n", waited[19]);
	redis_free(&redis);
	free(jobs);
}

int
main(int argc, char *argv[])
{
	static char spec[200], nothing[] = "";
	size_t i;

	if (argc != 2) {
		fprintf(stderr, "usage: %s SOCKET\n", argv[0]);
		return 64;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	log_set_level(LOG_LEVEL_ERROR);
	snprintf(spec, sizeof(spec), "unix:%s", argv[1]);
	outsider = redisConnectUnix(argv[1]);
	if (outsider == NULL || outsider->err != 0) {
		fprintf(stderr, "no Redis at %s\n", argv[1]);
		return 1;
	}
	conf = (struct conf){ .redis = spec, .redis_password = nothing,
		.redis_prefix = nothing, .max_accounts_per_worker = LEASES,
		.lease_ttl = 60, .lease_renew = 20, .claim_interval = 10,
		.claim_jitter = 5, .heartbeat_interval = 10,
		.heartbeat_ttl = 30, .rebalance_interval = 3600,
		.reconcile_interval = 3600 };
	ids = xcalloc(LIVE, sizeof(*ids));
	for (i = 0; i < LIVE; i++)
		uuid_generate(&ids[i]);
	base = event_base_new();
	bench_renewal();
	bench_scan();
	bench_reconcile();
	bench_bell();
	bench_loss(0, 1);
	bench_loss(1, CHILDREN);
	return 0;
}
