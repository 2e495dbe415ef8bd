/*
 * worker.c - a worker: what src/master/master.c does, around the real parts.
 */
#include "world.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "lease/gone.h"
#include "lease/keeper.h"
#include "redis/redis.h"
#include "master/accounts.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/budgets.h"
#include "master/metrics.h"
#include "master/orders.h"
#include "master/ownership.h"
#include "master/release.h"
#include "master/tiers.h"

#include <stddef.h>

/* --- names ------------------------------------------------------------------ */

static struct uuid
make_uuid(uint32_t number, uint8_t what)
{
	return (struct uuid){ .bytes = { (uint8_t)(number >> 24),
		(uint8_t)(number >> 16), (uint8_t)(number >> 8),
		(uint8_t)number, 0, 0, 0x40, 0, 0x80, [15] = what } };
}

struct uuid
account_uuid(uint32_t account)
{
	return make_uuid(account, 1);
}

struct uuid
user_uuid(uint32_t user)
{
	return make_uuid(user, 2);
}

uint32_t
uuid_number(const struct uuid *id)
{
	return id->bytes[15] == 0 ? NOBODY : (uint32_t)id->bytes[0] << 24 |
	    (uint32_t)id->bytes[1] << 16 | (uint32_t)id->bytes[2] << 8 |
	    id->bytes[3];
}

uint32_t
text_number(const char *text)
{
	char first[9];

	snprintf(first, sizeof(first), "%s", text);
	return (uint32_t)strtoul(first, NULL, 16);
}

struct process *
process_of(const struct master *m)
{
	return (struct process *)((char *)(uintptr_t)m -
	    offsetof(struct process, m));
}

/* --- what src/master/master.c does ------------------------------------------- */

/* The linker (--wrap) sends calls of these here first. */
void __real_takeover_begin(struct master *m, const struct uuid *id,
    int64_t deadline_boot_msecs);
void __wrap_takeover_begin(struct master *m, const struct uuid *id,
    int64_t deadline_boot_msecs);
void __real_accounts_renew(struct accounts *accounts, const struct uuid *id,
    int64_t deadline_boot_msecs);
void __wrap_accounts_renew(struct accounts *accounts, const struct uuid *id,
    int64_t deadline_boot_msecs);

void
__wrap_takeover_begin(struct master *m, const struct uuid *id,
    int64_t deadline)
{
	__real_takeover_begin(m, id, deadline);
	watch_won(process_of(m), uuid_number(id));
}

void
__wrap_accounts_renew(struct accounts *accounts, const struct uuid *id,
    int64_t deadline)
{
	__real_accounts_renew(accounts, id, deadline);
	watch_renewed(current, uuid_number(id));
}

void
orders_stop_step(struct master *m)
{
	process_maybe_ends(process_of(m));
}

char *
metrics_heartbeat(void *arg)
{
	(void)arg;
	return xstrdup("{}");
}

static void
on_redis_up(void *arg)
{
	struct master *m = arg;

	if (!m->is_stopping && m->keeper != NULL)
		keeper_redis_up(m->keeper);
}

static void
on_redis_down(void *arg)
{
	struct master *m = arg;

	if (m->keeper != NULL)
		keeper_redis_down(m->keeper);
}

/* --- what it hears ---------------------------------------------------------------- */

static void
hears_user(void *arg, uint64_t user)
{
	struct process *process = arg;
	struct uuid id = user_uuid((uint32_t)user), mine;
	bool has_any = false;
	uint32_t i;

	/* A large fleet hears of many users, and each worker has accounts of
	 * few: to walk them all for nothing would be most of the work. */
	for (i = (uint32_t)user * 2; i < user * 2 + 2; i++) {
		mine = account_uuid(i);
		has_any |= account_find(process->m.accounts, &mine) != NULL;
	}
	if (has_any && !process->m.is_stopping)
		tiers_on_user_active(&process->m, &id);
}

static void
hears_state(void *arg, uint64_t account)
{
	struct process *process = arg;
	struct uuid id = account_uuid((uint32_t)account);

	if (!process->m.is_stopping)
		ownership_on_state(&process->m, &id,
		    sim.rows[account].is_live ? "live" : "disabled", "wish");
}

static void
hears_release(void *arg, uint64_t tag)
{
	struct process *process = arg;

	(void)tag;
	keeper_claim_soon(process->m.keeper);
}

static void
hear(struct process *process, void (*what)(void *, uint64_t), uint64_t tag)
{
	actor_at(&process->actor, sim.now +
	    random_between(FOR_WORLD, 1, 2 * sim.latency), URGENT_REDIS, what,
	    process, tag);
}

void
process_hears_user(struct process *process, uint32_t user)
{
	hear(process, hears_user, user);
}

void
process_hears_state(struct process *process, uint32_t account)
{
	hear(process, hears_state, account);
}

void
process_hears_release(struct process *process, uint32_t number)
{
	(void)number;
	hear(process, hears_release, 0);
}

/* --- life --------------------------------------------------------------------------- */

void
process_judge_fitness(struct process *process)
{
	bool is_fit = process->actor.is_alive && process->actor.frozen == 0 &&
	    !process->is_leaving && !process->is_cut && server_answers() &&
	    redis_is_up(process->redis) && sim.is_postgres_up &&
	    process->m.is_postgres_up;

	if (!is_fit)
		process->fit_since = NEVER;
	else if (process->fit_since == NEVER)
		process->fit_since = sim.now;
}

static void
begin(void *arg, uint64_t tag)
{
	struct process *process = arg;
	struct master *m = &process->m;

	(void)tag;
	m->conf = sim.conf;
	m->is_postgres_up = true;
	m->started_mono = clock_mono_msecs();
	m->children = children_new(&(struct children_params){ .arg = m });
	m->redis = redis_new(&(struct redis_params){ .conf = m->conf,
	    .name = "main", .answer_msecs = sim.conf->lease_ttl > 40 ?
	    10000 : sim.conf->lease_ttl * 250, .on_up = on_redis_up,
	    .on_down = on_redis_down, .arg = m });
	process->redis = m->redis;
	m->clerk = clerk_new(m, "main", 0);
	ownership_start(m);
	tell("started");
}

struct process *
process_start(struct machine *machine)
{
	struct process *process = xcalloc(1, sizeof(*process));

	process->serial = (uint32_t)sim.n_processes;
	process->fit_since = process->first_up = NEVER;
	process->actor.machine = machine;
	process->actor.process = process;
	process->actor.is_alive = true;
	process->actor.generation = 1;
	snprintf(process->m.worker_id, sizeof(process->m.worker_id),
	    "h%u:%d:%08x", machine->number, ++machine->next_pid, process->serial);
	GROW(sim.processes, sim.n_processes, sim.cap_processes);
	sim.processes[sim.n_processes++] = process;
	current = process;
	begin(process, 0);
	current = NULL;
	return process;
}

/* Its memory goes; what was under way is told that nobody knows. */
static void
end(struct process *process)
{
	struct master *m = &process->m;
	struct process *caller = current;

	current = process;
	children_end_all(process);
	redis_free(&m->redis);
	ownership_end(m);
	clerk_free(&m->clerk);
	children_free(&m->children);
	actor_end(&process->actor);
	process_judge_fitness(process);
	current = caller;
}

void
process_kill(struct process *process, const char *how)
{
	if (!process->actor.is_alive)
		return;
	tell("%s: %s", process->m.worker_id, how);
	end(process);
}

static void
ends(void *arg, uint64_t tag)
{
	struct process *process = arg;

	(void)tag;
	tell("ended");
	watch_disturbed("ended");
	end(process);
}

void
process_maybe_ends(struct process *process)
{
	struct master *m = &process->m;

	if (children_count(m->children) > 0 ||
	    accounts_count(m->accounts) > 0 || !keeper_is_quiet(m->keeper))
		return;
	actor_at(&process->actor, sim.now, URGENT_REST, ends, process, 0);
}

static void
terminates(void *arg, uint64_t tag)
{
	struct process *process = arg;
	struct master *m = &process->m;
	struct child *child, *next;

	(void)tag;
	if (m->is_stopping)
		return;
	m->is_stopping = true;
	keeper_stop(m->keeper);
	for (child = children_first(m->children); child != NULL;
	    child = next) {
		next = child_next(child);
		child_stop(child, "shutdown");
	}
	release_all(m, "shutdown");
	actor_at(&process->actor, sim.now + sim.conf->stop_timeout * 1000 +
	    1000, URGENT_REST, ends, process, 0);
	process_maybe_ends(process);
}

void
process_term(struct process *process)
{
	process->is_leaving = true;
	process_judge_fitness(process);
	tell("%s: SIGTERM", process->m.worker_id);
	actor_at(&process->actor, sim.now, URGENT_REST, terminates, process,
	    0);
}

/* --- the rest of the system the product asks ------------------------------------------- */

static long
pid_of(const struct process *process)
{
	return strtol(strchr(process->m.worker_id, ':') + 1, NULL, 10);
}

bool
pid_is_alive(const struct machine *machine, int32_t pid)
{
	const struct process *p;
	size_t i;

	for (i = 0; i < sim.n_processes; i++) {
		p = sim.processes[i];
		if (p->actor.machine == machine && p->actor.is_alive &&
		    pid_of(p) == pid)
			return true;
	}
	return false;
}

/* lease/gone.h: is the master of that worker id, which is not ours, there? */
bool
process_is_gone(long pid)
{
	return pid == pid_of(current) ||
	    !pid_is_alive(current->actor.machine, (int32_t)pid);
}

size_t
budgets_host_in_use(const struct budgets *budgets, const char *host)
{
	(void)budgets;
	(void)host;
	return 0;
}
