/*
 * plan.c - makes a history out of a seed: the fleet, its faults, and what
 * users and their mail do meanwhile.
 *
 * Faults end at sim.calm_end at the latest; from there to the end nothing
 * fails, so that the promises about a quiet fleet can be looked at, too.
 */
#include "world.h"

#include "base/xmem.h"
#include "lease/keeper.h"
#include "master/children.h"

#include <signal.h>

#define MINUTE 60000

/* Of all faults, how many are of this kind. */
static void a_crash(void), a_term(void), a_stop(void), a_slow_loop(void),
    a_child_stop(void), a_child_death(void), a_suspend(void), a_host_crash(void),
    a_cut(void), a_split(void), a_redis_freeze(void), a_redis_restart(void),
    a_redis_snapshot(void), a_redis_wipe(void), a_postgres_outage(void),
    a_clock_step(void), a_state_change(void);

static const struct {
	unsigned weight;
	void (*happen)(void);
} faults[] = {
	{ 10, a_crash },
	{ 6, a_term },
	{ 12, a_stop },
	{ 8, a_slow_loop },
	{ 10, a_child_stop },
	{ 8, a_child_death },
	{ 8, a_suspend },
	{ 4, a_host_crash },
	{ 14, a_cut },
	{ 4, a_split },
	{ 4, a_redis_freeze },
	{ 4, a_redis_restart },
	{ 2, a_redis_snapshot },
	{ 2, a_redis_wipe },
	{ 4, a_postgres_outage },
	{ 2, a_clock_step },
	{ 10, a_state_change },
};

/* --- who --------------------------------------------------------------------- */

static struct process *
somebody(void)
{
	size_t i, n = 0, pick;

	for (i = 0; i < sim.n_processes; i++)
		n += sim.processes[i]->actor.is_alive;
	if (n == 0)
		return NULL;
	pick = random_below(FOR_PLAN, (uint32_t)n);
	for (i = 0;; i++)
		if (sim.processes[i]->actor.is_alive && pick-- == 0)
			return sim.processes[i];
}

/* Often around what the settings make a limit of: half of the times short. */
static int64_t
some_time(void)
{
	if (random_percent(FOR_PLAN, 50))
		return random_between(FOR_PLAN, 100,
		    sim.conf->lease_ttl * 500);
	return random_between(FOR_PLAN, 1000, sim.conf->lease_ttl * 2500);
}

static int64_t
until_calm(int64_t at)
{
	return at < sim.calm_end ? at : sim.calm_end;
}

/* --- workers ------------------------------------------------------------------ */

static void
starts(void *arg, uint64_t tag)
{
	struct machine *machine = arg;

	(void)tag;
	if (machine->asleep_since != 0) {
		world_at(sim.now + 1000, starts, machine, 0);
		return;
	}
	watch_disturbed("start");
	process_start(machine);
}

static void
restart_later(struct machine *machine)
{
	int64_t after = random_percent(FOR_PLAN, 50) ?
	    random_between(FOR_PLAN, 50, 3000) : some_time();

	world_at(until_calm(sim.now + after), starts, machine, 0);
}

static void
a_crash(void)
{
	struct process *p = somebody();

	if (p == NULL)
		return;
	process_kill(p, "kill -9");
	restart_later(p->actor.machine);
}

static void
a_term(void)
{
	struct process *p = somebody();

	if (p == NULL || p->is_leaving)
		return;
	process_term(p);
	restart_later(p->actor.machine);
}

static void
continues(void *arg, uint64_t tag)
{
	struct process *p = arg;

	(void)tag;
	if (!p->actor.is_alive)
		return;
	tell("%s: continues", p->m.worker_id);
	watch_disturbed("continued");
	actor_thaw(&p->actor);
	process_judge_fitness(p);
}

static void
stop_for(struct process *p, int64_t msecs)
{
	tell("%s: stopped for %lld ms", p->m.worker_id, (long long)msecs);
	actor_freeze(&p->actor);
	process_judge_fitness(p);
	world_at(until_calm(sim.now + msecs), continues, p, 0);
}

static void
a_stop(void)
{
	struct process *p = somebody();

	if (p != NULL)
		stop_for(p, some_time());
}

static void
a_slow_loop(void)
{
	struct process *p = somebody();

	if (p != NULL)
		stop_for(p, random_between(FOR_PLAN, 100, 9000));
}

/* --- children ------------------------------------------------------------------- */

static void
a_child_stop(void)
{
	struct process *p = somebody();
	struct sim_child *child = p != NULL ? children_random(p) : NULL;

	if (child != NULL)
		child_freeze(child, some_time());
}

static void
a_child_death(void)
{
	struct process *p = somebody();
	struct sim_child *child = p != NULL ? children_random(p) : NULL;

	if (child != NULL)
		child_dies(child, SIGSEGV, "dies of SIGSEGV");
}

/* --- machines ---------------------------------------------------------------------- */

static void
each_process_of(struct machine *machine, bool is_asleep)
{
	struct process *p;
	size_t i;

	for (i = 0; i < sim.n_processes; i++) {
		p = sim.processes[i];
		if (p->actor.machine != machine || !p->actor.is_alive)
			continue;
		if (is_asleep) {
			actor_freeze(&p->actor);
			children_freeze_all(p, true);
		} else {
			actor_thaw(&p->actor);
			children_freeze_all(p, false);
		}
		process_judge_fitness(p);
	}
}

static void
wakes(void *arg, uint64_t tag)
{
	struct machine *machine = arg;

	(void)tag;
	tell("host %u wakes", machine->number);
	watch_disturbed("woken");
	machine_wake(machine);
	each_process_of(machine, false);
}

static void
a_suspend(void)
{
	struct process *p = somebody();
	struct machine *machine = p != NULL ? p->actor.machine : NULL;
	int64_t msecs = some_time();

	if (machine == NULL || machine->asleep_since != 0)
		return;
	tell("host %u sleeps for %lld ms", machine->number, (long long)msecs);
	machine_sleep(machine);
	each_process_of(machine, true);
	world_at(until_calm(sim.now + msecs), wakes, machine, 0);
}

static void
a_host_crash(void)
{
	struct process *p = somebody();
	struct machine *machine = p != NULL ? p->actor.machine : NULL;
	size_t i;

	if (machine == NULL || machine->asleep_since != 0)
		return;
	tell("host %u loses its power", machine->number);
	for (i = 0; i < sim.n_processes; i++)
		if (sim.processes[i]->actor.machine == machine)
			process_kill(sim.processes[i], "power lost");
	restart_later(machine);
}

/* Started while the host sleeps: cannot be. */
static void
a_clock_step(void)
{
	struct machine *machine = &sim.machines[random_below(FOR_PLAN, sim.n_machines)];
	int64_t step = random_between(FOR_PLAN, -5 * MINUTE, 5 * MINUTE);

	tell("host %u: wall clock steps by %lld ms", machine->number,
	    (long long)step);
	machine->wall_offset += step;
}

/* --- network ------------------------------------------------------------------------- */

static void
heals(void *arg, uint64_t tag)
{
	struct process *p = arg;

	(void)tag;
	if (!p->is_cut)
		return;
	tell("%s: reaches Redis again", p->m.worker_id);
	watch_disturbed("healed");
	link_heal(p);
}

static void
cut_for(struct process *p, int64_t msecs)
{
	if (p->is_cut)
		return;
	tell("%s: cut off from Redis for %lld ms", p->m.worker_id,
	    (long long)msecs);
	link_cut(p);
	world_at(until_calm(sim.now + msecs), heals, p, 0);
}

static void
a_cut(void)
{
	struct process *p = somebody();

	if (p != NULL)
		cut_for(p, some_time());
}

static void
a_split(void)
{
	int64_t msecs = some_time();
	size_t i;

	for (i = 0; i < sim.n_processes; i++)
		if (sim.processes[i]->actor.is_alive &&
		    random_percent(FOR_PLAN, 50))
			cut_for(sim.processes[i], msecs);
}

/* --- servers --------------------------------------------------------------------------- */

static void
redis_thaws(void *arg, uint64_t tag)
{
	(void)arg;
	(void)tag;
	tell("Redis continues");
	watch_disturbed("Redis continues");
	server_freeze(false);
}

static void
a_redis_freeze(void)
{
	int64_t msecs = some_time();

	if (!server_answers())
		return;
	tell("Redis hangs for %lld ms", (long long)msecs);
	server_freeze(true);
	world_at(until_calm(sim.now + msecs), redis_thaws, NULL, 0);
}

enum memory { AS_IT_WAS, AS_OF_LAST_SNAPSHOT, EMPTY };

static void
redis_returns(void *arg, uint64_t memory)
{
	(void)arg;
	tell("Redis is back%s", memory == EMPTY ? ", empty" :
	    memory == AS_OF_LAST_SNAPSHOT ? " with an old snapshot" : "");
	watch_disturbed("Redis is back");
	if (memory == EMPTY)
		server_wipe();
	else if (memory == AS_OF_LAST_SNAPSHOT)
		server_load_snapshot();
	server_back();
	if (memory != AS_IT_WAS)
		watch_data_lost(memory == EMPTY);
}

static void
redis_fails(enum memory memory)
{
	if (!server_answers())
		return;
	tell("Redis ends");
	server_crash();
	world_at(until_calm(sim.now + (random_percent(FOR_PLAN, 50) ?
	    random_between(FOR_PLAN, 100, 3000) : some_time())),
	    redis_returns, NULL, memory);
}

static void
a_redis_restart(void)
{
	redis_fails(AS_IT_WAS);
}

static void
a_redis_snapshot(void)
{
	redis_fails(AS_OF_LAST_SNAPSHOT);
}

static void
a_redis_wipe(void)
{
	if (random_percent(FOR_PLAN, 50)) {
		redis_fails(EMPTY);
	} else if (server_answers()) {
		tell("Redis is wiped");
		server_wipe();
		watch_data_lost(true);
	}
}

/* Redis saves now and then, when it can. */
static void
saves(void *arg, uint64_t tag)
{
	(void)arg;
	(void)tag;
	if (server_answers())
		server_snapshot();
	if (sim.now < sim.calm_end)
		world_at(sim.now + random_between(FOR_PLAN, 10000, 60000),
		    saves, NULL, 0);
}

static void
postgres_returns(void *arg, uint64_t tag)
{
	(void)arg;
	(void)tag;
	tell("PostgreSQL is back");
	watch_disturbed("PostgreSQL is back");
	sim.is_postgres_up = true;
}

static void
a_postgres_outage(void)
{
	int64_t msecs = some_time();
	size_t i;

	if (!sim.is_postgres_up)
		return;
	tell("PostgreSQL away for %lld ms", (long long)msecs);
	sim.is_postgres_up = false;
	for (i = 0; i < sim.n_processes; i++)
		process_judge_fitness(sim.processes[i]);
	world_at(until_calm(sim.now + msecs), postgres_returns, NULL, 0);
}

/* --- accounts ----------------------------------------------------------------------------- */

static void
set_live(uint32_t account, bool is_live)
{
	bool is_listed = random_percent(FOR_PLAN, 80);
	bool is_told = random_percent(FOR_PLAN, 80);

	tell("account %u is now %s", account, is_live ? "live" : "disabled");
	tables_set_live(account, is_live);
	/* Now and then who did it fell over before Redis heard. */
	if (is_listed)
		server_set_live(account, is_live);
	if (is_told)
		server_publish_state(account);
	sim.rows[account].is_known = is_listed && server_answers();
}

static void
lives_again(void *arg, uint64_t account)
{
	(void)arg;
	watch_disturbed("live again");
	set_live((uint32_t)account, true);
}

static void
a_state_change(void)
{
	uint32_t account = random_below(FOR_PLAN, sim.n_accounts);

	if (!sim.is_postgres_up || !sim.rows[account].is_live)
		return;
	set_live(account, false);
	if (random_percent(FOR_PLAN, 70))
		world_at(until_calm(sim.now + some_time()), lives_again, NULL,
		    account);
}

/* --- users and mail -------------------------------------------------------------------------- */

static void
mail_arrives(void *arg, uint64_t every)
{
	uint32_t account = random_below(FOR_PLAN, sim.n_accounts);
	struct row *row = &sim.rows[account];

	(void)arg;
	row->mail++;
	row->mail_since = WALL_SECS + sim.now / 1000;
	children_mail(account);
	world_at(sim.now + random_between(FOR_PLAN, 1, 2 * (int64_t)every),
	    mail_arrives, NULL, every);
}

static void
user_comes(void *arg, uint64_t every)
{
	uint32_t user = random_below(FOR_PLAN, sim.n_users), i;
	int64_t minutes = random_between(FOR_PLAN, 3,
	    sim.conf->tier_session_grace_min);

	(void)arg;
	if (sim.is_postgres_up)
		for (i = user * 2; i < user * 2 + 2 && i < sim.n_accounts; i++)
			sim.rows[i].last_active_secs = WALL_SECS +
			    sim.now / 1000;
	tell("user %u is active, session of %lld min", user,
	    (long long)minutes);
	if (server_is_up() && server_session_left(user) <= 0)
		sim.users[user].session_begin = sim.now;
	if (server_is_up())
		sim.users[user].session_end = sim.now + minutes * MINUTE;
	server_session(user, minutes * MINUTE);
	server_publish_user(user);
	watch_user_active(user);
	world_at(sim.now + random_between(FOR_PLAN, 1, 2 * (int64_t)every),
	    user_comes, NULL, every);
}

/* --- the whole ---------------------------------------------------------------------------------- */

static void
fault_happens(void *arg, uint64_t every)
{
	unsigned total = 0, pick;
	size_t i;

	(void)arg;
	if (sim.now >= sim.calm_end)
		return;
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		total += faults[i].weight;
	pick = random_below(FOR_PLAN, total);
	for (i = 0; pick >= faults[i].weight; i++)
		pick -= faults[i].weight;
	watch_disturbed("fault");
	faults[i].happen();
	world_at(sim.now + random_between(FOR_PLAN, 1, 2 * (int64_t)every),
	    fault_happens, NULL, every);
}

static void
make_hosts(void)
{
	bool is_wild = sim.broken == BREAK_MARGIN ||
	    random_percent(FOR_PLAN, 20);
	int64_t ppm = is_wild ? 20000 : 100;
	unsigned i;

	sim.machines = xcalloc(sim.n_machines, sizeof(*sim.machines));
	for (i = 0; i < sim.n_machines; i++) {
		struct machine *machine = &sim.machines[i];

		machine->number = i;
		machine->next_pid = 1000;
		machine->boot_base = random_between(FOR_PLAN, 1000, 1000000000);
		machine->drift_ppm = random_between(FOR_PLAN, -ppm, ppm);
		machine->wall_offset = (int64_t)WALL_SECS * 1000 -
		    machine->boot_base +
		    random_between(FOR_PLAN, -MINUTE, MINUTE);
	}
}

/* Far from the limits of the tiers, so that no clock can be in doubt. */
static int64_t
some_age_secs(void)
{
	static const int64_t hours[] = { 1, 12, 36, 60, 120, 720 };

	return hours[random_below(FOR_PLAN, 6)] * 3600;
}

static void
make_accounts(void)
{
	bool is_set_there = random_percent(FOR_PLAN, 70);
	uint32_t i;

	for (i = 0; i < sim.n_accounts; i++) {
		struct row *row = &sim.rows[i];

		row->user = i / 2;
		row->owner = NOBODY;
		row->is_live = !random_percent(FOR_PLAN, 3);
		row->last_mail_secs = WALL_SECS - some_age_secs();
		row->last_active_secs = WALL_SECS - some_age_secs();
		server_set_live(i, row->is_live && is_set_there);
		row->is_known = true; /* a first reconcile, at the start */
	}
}

static void
start_workers(void)
{
	bool is_together = random_percent(FOR_PLAN, 60);
	int64_t within = is_together ? 5000 : 2 * MINUTE;
	unsigned i;

	/* What all workers of a large fleet do at once, each in a process of
	 * its own, is too much for one. */
	if (sim.n_machines > 50)
		within = 5 * MINUTE;
	for (i = 0; i < sim.n_machines; i++)
		world_at(random_between(FOR_PLAN, 0, within), starts,
		    &sim.machines[i], 0);
}

void
plan_make(void)
{
	/* In the mean, msecs; a fleet of any size has its share. */
	uint64_t fault = (uint64_t)random_between(FOR_PLAN, 2000, 30000);
	uint64_t mail = (uint64_t)600 * 1000 / sim.n_accounts + 1;
	uint64_t user = (uint64_t)1200 * 1000 / sim.n_accounts + 1;

	make_hosts();
	make_accounts();
	sim.latency = random_percent(FOR_PLAN, 10) ?
	    random_between(FOR_PLAN, 50, 400) :
	    random_between(FOR_PLAN, 1, 30);
	start_workers();
	world_at(0, saves, NULL, 0);
	world_at(MINUTE, mail_arrives, NULL, mail);
	world_at(MINUTE, user_comes, NULL, user);
	if (sim.has_faults)
		world_at(MINUTE, fault_happens, NULL, fault);
	watch_begin();
}
