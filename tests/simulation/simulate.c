/*
 * simulate.c - runs histories of a fleet of workers, one for each seed, until
 * one breaks a promise.
 *
 * One seed is one history, whatever ran before it in this process.
 */
#include "world.h"

#include "base/xmem.h"
#include "conf/options.h"
#include "lease/idmap.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

struct sim sim;

static struct {
	uint64_t first, n;
	uint32_t accounts, workers, minutes; /* 0: as the seed wants */
	double seconds;
	const char *options[64];
	size_t n_options;
	const char *program;
	bool is_quiet; /* an expected violation is not told */
	char violation[256];
} params = { .first = 1, .n = 100 };

static const struct {
	const char *name, *what, *words;
} breaks[] = {
#define X(symbol, name, what, words) { name, what, words },
	BREAKS(X)
#undef X
};

/* Within so many seeds each broken rule must be noticed. */
#define SEEDS_TO_NOTICE 400

void
tell(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (!sim.is_verbose)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_set_process("t=%lld.%03lld %s", (long long)sim.now / 1000,
	    (long long)sim.now % 1000,
	    current != NULL ? current->m.worker_id : "");
	log_info(NULL, "* %s", text);
}

/* How to see it again. */
static void
print_replay(FILE *to)
{
	size_t i;

	fprintf(to, "%s -s %llu -n 1 -v", params.program,
	    (unsigned long long)sim.seed);
	if (params.accounts != 0)
		fprintf(to, " -a %u", params.accounts);
	if (params.workers != 0)
		fprintf(to, " -w %u", params.workers);
	if (params.minutes != 0)
		fprintf(to, " -m %u", params.minutes);
	if (!sim.has_faults)
		fprintf(to, " -q");
	if (sim.broken != BREAK_NOTHING)
		fprintf(to, " -b %s", breaks[sim.broken].name);
	for (i = 0; i < params.n_options; i++)
		fprintf(to, " -o %s", params.options[i]);
	fprintf(to, "\n");
}

void
violated(const char *fmt, ...)
{
	va_list ap;

	if (sim.failures++ > 0)
		return;
	va_start(ap, fmt);
	vsnprintf(params.violation, sizeof(params.violation), fmt, ap);
	va_end(ap);
	tell("VIOLATION: %s", params.violation);
	if (params.is_quiet)
		return;
	printf("seed %llu, t=%lld.%03lld s: %s\nagain: ",
	    (unsigned long long)sim.seed, (long long)sim.now / 1000,
	    (long long)sim.now % 1000, params.violation);
	print_replay(stdout);
}

/* The product found itself broken. */
static void
on_abort(int sig)
{
	(void)sig;
	printf("again: ");
	print_replay(stdout);
	fflush(stdout);
	_exit(EX_SOFTWARE);
}

/* Of the real world; the C library's clock is not touched, but our own
 * functions of that name are simulated. */
static double
real_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* --- one history ------------------------------------------------------------ */

static void
choose_settings(void)
{
	struct err err = ERR_INIT;
	uint32_t pick = random_below(FOR_PLAN, 10);

	if (conf_load_text(&sim.conf, "simulation", "", 0, params.options,
		params.n_options, &err) == -1)
		fprintf(stderr, "%s\n", err.text), exit(EX_CONFIG);
	if (params.accounts != 0) /* as they are, for a fleet that is given */
		return;
	sim.conf->hot_budget_per_worker = random_between(FOR_PLAN, 2, 30);
	if (random_percent(FOR_PLAN, 20)) /* just enough room for all */
		sim.conf->max_accounts_per_worker = sim.n_accounts * 13 / 10 /
		    sim.n_machines + 5;
	if (pick < 3) { /* shortened, as in the integration tests */
		sim.conf->lease_ttl = pick == 0 ? 10 : 20;
		sim.conf->lease_renew = pick == 0 ? 3 : 6;
		sim.conf->claim_interval = pick == 0 ? 1 : 4;
		sim.conf->claim_jitter = pick == 0 ? 1 : 2;
		sim.conf->heartbeat_interval = 3;
		sim.conf->heartbeat_ttl = 9;
		sim.conf->rebalance_interval = 10;
		sim.conf->tier_interval = 20;
	}
}

static void
world_reset(void)
{
	size_t i;

	for (i = 0; i < sim.n_processes; i++) {
		process_kill(sim.processes[i], "the end");
		free(sim.processes[i]->redis);
		free(sim.processes[i]);
	}
	free(sim.processes);
	sim.processes = NULL;
	sim.n_processes = sim.cap_processes = 0;
	free(sim.machines);
	sim.machines = NULL;
	if (sim.conf != NULL)
		conf_free(&sim.conf);
	sim.n_accounts = sim.n_users = 0;
	loop_reset();
	server_reset();
	tables_reset();
	children_reset();
	watch_reset();
}

/* Chooses the size, makes the world, runs it to its end. */
static int
history(uint64_t seed)
{
	int64_t calm;

	sim.seed = seed;
	sim.now = 0;
	sim.failures = 0;
	random_seed(seed);
	sim.n_machines = params.workers != 0 ? params.workers :
	    (unsigned)random_between(FOR_PLAN, 2, 8);
	sim.n_accounts = params.accounts != 0 ? params.accounts :
	    (uint32_t)random_between(FOR_PLAN, 10, 120);
	sim.n_users = (sim.n_accounts + 1) / 2;
	choose_settings();
	sim.is_postgres_up = true;
	loop_reset();
	server_reset();
	tables_reset();
	children_reset();
	watch_reset();
	calm = bound_settled(sim.conf) + 60000;
	sim.end = params.minutes != 0 ? params.minutes * 60000 :
	    random_between(FOR_PLAN, 2, 10) * 60000 + calm;
	sim.calm_end = sim.end > calm + 60000 ? sim.end - calm : 60000;
	plan_make();
	loop_run(sim.end);
	if (sim.failures == 0)
		watch_end(params.n == 1);
	return sim.failures == 0 ? 0 : -1;
}

/* --- many ---------------------------------------------------------------------- */

static int
histories(void)
{
	double begun = real_seconds(), took;
	uint64_t steps = 0, n = 0;
	int64_t simulated = 0;
	int result = 0;

	while (n < params.n && result == 0 && (params.seconds <= 0 ||
	    real_seconds() - begun < params.seconds)) {
		result = history(params.first + n++);
		steps += loop_steps();
		simulated += sim.now;
		world_reset();
	}
	took = real_seconds() - begun;
	printf("%llu histories, %.1f hours, %llu steps, %.1f s: %s\n",
	    (unsigned long long)n, (double)simulated / 3600000.0,
	    (unsigned long long)steps, took,
	    result == 0 ? "all promises kept" : "VIOLATION");
	return result;
}

/* Can each promise be seen to break? */
static int
self_test(void)
{
	unsigned missed = 0;
	bool is_noticed;
	uint64_t n;

	params.is_quiet = true;
	for (sim.broken = BREAK_NOTHING + 1; sim.broken < BREAK_COUNT;
	    sim.broken++) {
		/* By accident, or by another's promise, does not count. */
		is_noticed = false;
		for (n = 0; n < SEEDS_TO_NOTICE && !is_noticed; n++) {
			params.violation[0] = '\0';
			is_noticed = history(params.first + n) == -1 &&
			    strstr(params.violation,
				breaks[sim.broken].words) != NULL;
			world_reset();
		}
		missed += !is_noticed;
		if (!is_noticed)
			printf("%-8s %s: NOT NOTICED %s\n",
			    breaks[sim.broken].name, breaks[sim.broken].what,
			    params.violation);
		else
			printf("%-8s %s: noticed by seed %llu: %s\n",
			    breaks[sim.broken].name, breaks[sim.broken].what,
			    (unsigned long long)sim.seed, params.violation);
		fflush(stdout);
	}
	return missed == 0 ? 0 : -1;
}

/* --- the command line -------------------------------------------------------------- */

static void
usage(FILE *to)
{
	size_t i;

	fprintf(to,
	    "usage: %s [-hqtv] [-s SEED] [-n HISTORIES] [-T SECONDS]\n"
	    "       [-a ACCOUNTS] [-w WORKERS] [-m MINUTES] [-b RULE]\n"
	    "       [-o NAME=VALUE]...\n"
	    "  -s  first seed (1); seed + 1 follows\n"
	    "  -n  so many histories (100)\n"
	    "  -T  no new history after so many seconds\n"
	    "  -a, -w, -m  size of the fleet and virtual minutes, instead of\n"
	    "      what the seed chooses\n"
	    "  -o  a setting of mailherd.conf\n"
	    "  -q  nothing fails\n"
	    "  -v  tell the history, with what the workers log\n"
	    "  -t  self-test: break each rule, must be noticed\n"
	    "  -b  break this rule:\n", params.program);
	for (i = 1; i < BREAK_COUNT; i++)
		fprintf(to, "      %-8s %s\n", breaks[i].name,
		    breaks[i].what);
}

static enum broken
parse_break(const char *name)
{
	unsigned i;

	for (i = 0; i < BREAK_COUNT; i++)
		if (strcmp(name, breaks[i].name) == 0)
			return (enum broken)i;
	usage(stderr);
	exit(EX_USAGE);
}

static bool
parse_options(int argc, char **argv)
{
	bool is_self_test = false;
	int option;

	while ((option = getopt(argc, argv, "a:b:hm:n:o:qs:tT:vw:")) != -1) {
		switch (option) {
		case 'a': params.accounts = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'b': sim.broken = parse_break(optarg); break;
		case 'h': usage(stdout); exit(EX_OK);
		case 'm': params.minutes = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'n': params.n = strtoull(optarg, NULL, 10); break;
		case 'o':
			if (params.n_options < 64)
				params.options[params.n_options++] = optarg;
			break;
		case 'q': sim.has_faults = false; break;
		case 's': params.first = strtoull(optarg, NULL, 10); break;
		case 't': is_self_test = true; break;
		case 'T': params.seconds = strtod(optarg, NULL); break;
		case 'v': sim.is_verbose = true; break;
		case 'w': params.workers = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		default: usage(stderr); exit(EX_USAGE);
		}
	}
	return is_self_test;
}

int
main(int argc, char **argv)
{
	struct idmap map = IDMAP_INIT;
	struct uuid id = account_uuid(0);
	bool is_self_test;

	params.program = argv[0];
	sim.has_faults = true;
	random_seed(0);
	/* Chooses its seed once a process: not in the middle of a history. */
	idmap_put(&map, &id, IDMAP_PRESENT);
	idmap_release(&map);
	is_self_test = parse_options(argc, argv);
	log_open("simulate", LOG_TARGET_STDERR);
	/* Errors of the workers are part of a history, like all the rest. */
	log_set_level(sim.is_verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
	if (!sim.is_verbose && log_set_file("/dev/null") == -1)
		die(EX_OSERR, "no /dev/null");
	signal(SIGABRT, on_abort);
	return (is_self_test ? self_test() : histories()) == 0 ? EX_OK :
	    EXIT_FAILURE;
}
