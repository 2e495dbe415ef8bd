/*
 * children.c - master/children.h and proc/slots.h without fork.
 *
 * A child here does what the real one does to the rest of the world: it looks
 * at its deadline before each step and dies by itself when it has passed, sends
 * transactions that carry its epoch, reports, and ends when asked to.  It can
 * be stopped in the middle of that, and a transaction may arrive late.
 */
#include "world.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "child/child.h" /* struct hot_task */
#include "redis/loop.h"
#include "master/accounts.h"
#include "master/children.h"
#include "master/dispatch.h"
#include "master/pass_result.h"
#include "master/pool.h"

#include <bsd/string.h>
#include <bsd/sys/queue.h>
#include <signal.h>

#define START_MSECS 30000 /* as src/master/children.c */

struct sim_child {
	struct child c; /* first: the master's view of it */
	struct actor actor;
	struct children *all;
	struct sim_child *next_free;
	uint32_t account;
	int64_t epoch;
	int64_t deadline;
	unsigned scope;
	bool is_idling; /* in truth */
	bool has_answer; /* of PostgreSQL to its transaction */
	struct msg_pass_done done;
	uint64_t mail;	 /* of the account, as seen by this pass */
};

struct children {
	struct process *process;
	struct master *m;
	TAILQ_HEAD(child_list, child) list;
	size_t n, n_of[KIND_COUNT];
};

static struct {
	struct sim_child **items;
	size_t n, cap;
	struct sim_child *free;
	uint32_t generation;
	/* the hot child that idles for an account, whoever's */
	struct sim_child **idle;
} slots;

static struct sim_child *
sim_child_of(struct child *child)
{
	return (struct sim_child *)child;
}

/* --- its end ------------------------------------------------------------------ */

static void
is_reaped(void *arg, uint64_t tag)
{
	struct sim_child *child = arg;
	struct children *all = child->all;

	(void)tag;
	child->c.state = CHILD_GONE;
	TAILQ_REMOVE(&all->list, &child->c, entry);
	all->n--;
	all->n_of[child->c.kind]--;
	event_free(child->c.timer);
	pass_result_child_end(all->m, &child->c);
	child->next_free = slots.free;
	slots.free = child;
	if (all->m->is_stopping)
		process_maybe_ends(all->process);
}

/* It is no more; the master hears of it when it runs. */
void
child_dies(struct sim_child *child, int wait_status, const char *how)
{
	if (!child->actor.is_alive)
		return;
	if (how != NULL)
		tell("child %d of account %d: %s", (int)child->c.pid,
		    (int)child->account, how);
	if (child->account != NOBODY)
		watch_child_ends(child->account, child);
	if (child->is_idling && slots.idle[child->account] == child)
		slots.idle[child->account] = NULL;
	child->is_idling = false;
	actor_end(&child->actor);
	child->c.wait_status = wait_status;
	actor_at(&child->all->process->actor, sim.now + 1, URGENT_REST,
	    is_reaped, child, 0);
}

static void
exits(struct sim_child *child, enum child_exit status)
{
	child_dies(child, (int)status << 8, NULL);
}

/* As the real one, before each step and from a timer. */
static bool
is_late(struct sim_child *child)
{
	if (sim.broken == BREAK_BLIND ||
	    child->deadline > (sim.broken == BREAK_MONO ?
		machine_mono(child->actor.machine) : machine_boot(child->actor.machine)))
		return false;
	exits(child, EXIT_LEASE_LOST);
	return true;
}

static void
deadline_rings(void *arg, uint64_t tag)
{
	struct sim_child *child = arg;

	if (child->deadline == (int64_t)tag)
		is_late(child);
}

/* --- what it tells the master --------------------------------------------------- */

static void
is_heard_hello(void *arg, uint64_t generation)
{
	struct sim_child *child = arg;

	if (child->c.generation != generation ||
	    child->c.state != CHILD_STARTING)
		return;
	child->c.state = child->c.kind == KIND_HOT ? CHILD_WORKING :
	    CHILD_READY;
	child->c.since_mono_msecs = clock_mono_msecs();
	event_del(child->c.timer);
	if (child->all->m->is_stopping)
		child_stop(&child->c, "shutdown");
	else if (child->c.kind == KIND_HOT)
		child_prolong(&child->c,
		    dispatch_silence_msecs(sim.conf, KIND_HOT));
	else
		accounts_look_soon(child->all->m->accounts);
}

static void
is_heard_idling(void *arg, uint64_t generation)
{
	struct sim_child *child = arg;

	if (child->c.generation != generation ||
	    child->c.state == CHILD_GONE || child->c.account == NULL)
		return;
	child_prolong(&child->c, dispatch_silence_msecs(sim.conf, KIND_HOT));
	pass_result_idling(child->all->m, &child->c);
}

static void
is_heard_done(void *arg, uint64_t generation)
{
	struct sim_child *child = arg;
	struct child *c = &child->c;

	if (c->generation != generation || c->state == CHILD_GONE)
		return;
	child_prolong(c, dispatch_silence_msecs(sim.conf, c->kind));
	if (c->account != NULL)
		pass_result_handle(child->all->m, c, &child->done);
	if (c->kind == KIND_POOL)
		pool_child_done(c);
}

static void
say(struct sim_child *child, void (*heard)(void *, uint64_t))
{
	actor_at(&child->all->process->actor, sim.now + 1, URGENT_REST, heard,
	    child, child->c.generation);
}

static void
report(struct sim_child *child, enum err_kind outcome)
{
	struct row *row = &sim.rows[child->account];

	child->done = (struct msg_pass_done){ .outcome = outcome,
		.account_id = account_uuid(child->account),
		.epoch = child->epoch, .msecs = 50 };
	if (outcome == ERR_NONE)
		child->done.last_mail_secs = row->last_mail_secs;
	if (outcome == ERR_FENCED && !row->is_live)
		child->done.account_left_live = 1;
	if (child->c.kind == KIND_POOL) { /* it is nobody's now */
		watch_child_ends(child->account, child);
		child->account = NOBODY;
		child->deadline = NEVER;
	}
	say(child, is_heard_done);
}

/* --- a pass ------------------------------------------------------------------------ */

static void
is_answered(void *arg, uint64_t outcome)
{
	struct sim_child *child = arg;

	if (is_late(child))
		return;
	report(child, (enum err_kind)outcome);
	if (outcome == ERR_FENCED && child->c.kind == KIND_HOT)
		exits(child, EXIT_FENCED);
}

struct transaction {
	LIST_ENTRY(transaction) entry;
	struct sim_child *child;
	uint32_t generation, account, serial;
	int64_t epoch;
};

/* A history may end while some are under way. */
static LIST_HEAD(, transaction) transactions =
    LIST_HEAD_INITIALIZER(transactions);

/* It is on its way whatever becomes of the child. */
static void
transaction_arrives(void *arg, uint64_t tag)
{
	struct transaction *t = arg;
	enum err_kind outcome = ERR_DATABASE;

	(void)tag;
	if (sim.is_postgres_up)
		outcome = tables_write(t->account, t->epoch, t->serial) ?
		    ERR_NONE : ERR_FENCED;
	if (t->child->actor.is_alive &&
	    t->child->actor.generation == t->generation)
		actor_at(&t->child->actor, sim.now + 2, URGENT_REST,
		    is_answered, t->child, outcome);
	LIST_REMOVE(t, entry);
	free(t);
}

static void
pass_writes(void *arg, uint64_t tag)
{
	struct sim_child *child = arg;
	struct transaction *t;
	int64_t delay = random_between(FOR_WORLD, 1, 20);

	(void)tag;
	if (is_late(child))
		return;
	watch_step(child->all->process, child->account, child->deadline);
	/* A network that comes back delivers what was sent long ago. */
	if (sim.has_faults && sim.now < sim.calm_end &&
	    random_below(FOR_WORLD, 100) == 0)
		delay = random_between(FOR_WORLD, 1000, 120000);
	t = xcalloc(1, sizeof(*t));
	t->child = child;
	t->generation = child->actor.generation;
	t->account = child->account;
	t->serial = child->all->process->serial;
	t->epoch = child->epoch;
	LIST_INSERT_HEAD(&transactions, t, entry);
	world_at(sim.now + delay, transaction_arrives, t, 0);
}

static void
begin_pass(struct sim_child *child)
{
	actor_at(&child->actor,
	    sim.now + random_between(FOR_WORLD, 20, 200), URGENT_REST,
	    pass_writes, child, 0);
}

/* --- a hot child ---------------------------------------------------------------------- */

static void
reaches_idle(void *arg, uint64_t tag)
{
	struct sim_child *child = arg;

	(void)tag;
	if (is_late(child))
		return;
	watch_step(child->all->process, child->account, child->deadline);
	child->is_idling = true;
	slots.idle[child->account] = child;
	say(child, is_heard_idling);
	begin_pass(child);
}

void
children_mail(uint32_t account)
{
	struct sim_child *child = slots.idle[account];

	if (child != NULL && child->actor.is_alive)
		begin_pass(child);
}

bool
child_is_in_idle(const struct child *child)
{
	return child != NULL &&
	    ((const struct sim_child *)child)->is_idling;
}

/* --- orders of the master ---------------------------------------------------------------- */

static void
says_hello(void *arg, uint64_t tag)
{
	struct sim_child *child = arg;

	(void)tag;
	say(child, is_heard_hello);
	if (child->c.kind == KIND_HOT)
		actor_at(&child->actor,
		    sim.now + random_between(FOR_WORLD, 50, 500), URGENT_REST,
		    reaches_idle, child, 0);
}

static void
logs_out(void *arg, uint64_t tag)
{
	(void)tag;
	exits(arg, EXIT_DONE);
}

int
child_send(struct child *c, enum msg_type type, const void *payload)
{
	struct sim_child *child = sim_child_of(c);
	const struct msg_poll_start *start = payload;

	if (!child->actor.is_alive)
		return -1;
	switch (type) {
	case MSG_STOP:
		actor_at(&child->actor,
		    sim.now + random_between(FOR_WORLD, 2, 60), URGENT_REST,
		    logs_out, child, 0);
		break;
	case MSG_POLL_START:
		child->account = uuid_number(&start->account_id);
		child->epoch = start->epoch;
		child->scope = start->scope;
		watch_child(child->all->process, child->account, child,
		    child->deadline);
		begin_pass(child);
		break;
	default:
		break;
	}
	return 0;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct sim_child *child = arg;

	(void)fd;
	(void)what;
	if (child->c.state == CHILD_READY || child->c.state >= CHILD_KILLED)
		return;
	if (child->c.state != CHILD_STOPPING)
		child->c.cause = CAUSE_HUNG;
	strlcpy(child->c.why, "no answer", sizeof(child->c.why));
	child->c.state = CHILD_KILLED;
	child_dies(child, SIGKILL, "killed: no answer");
}

void
child_move_deadline(struct child *child, int64_t deadline_boot_msecs)
{
	slot_set_deadline(child->slot, deadline_boot_msecs);
}

void
child_works(struct child *child, int64_t limit_msecs)
{
	child->state = CHILD_WORKING;
	child->since_mono_msecs = clock_mono_msecs();
	child_prolong(child, limit_msecs);
}

void
child_prolong(struct child *child, int64_t limit_msecs)
{
	if (child->state == CHILD_WORKING && limit_msecs > 0)
		event_in_msecs(child->timer, limit_msecs);
}

void
child_is_done(struct child *child)
{
	if (child->state != CHILD_WORKING)
		return;
	child->state = CHILD_READY;
	child->since_mono_msecs = clock_mono_msecs();
	event_del(child->timer);
	accounts_look_soon(child->owner->m->accounts);
}

static void
note_why(struct child *child, const char *why)
{
	if (child->cause != CAUSE_ITSELF)
		return;
	child->cause = CAUSE_WISH;
	strlcpy(child->why, why, sizeof(child->why));
}

void
child_stop(struct child *child, const char *why)
{
	note_why(child, why);
	if (child->state >= CHILD_STOPPING)
		return;
	child->state = CHILD_STOPPING;
	event_in_msecs(child->timer, sim.conf->stop_timeout * 1000);
	child_send(child, MSG_STOP, NULL);
}

void
child_kill(struct child *child, const char *why)
{
	note_why(child, why);
	if (child->state >= CHILD_KILLED)
		return;
	child->state = CHILD_KILLED;
	child_dies(sim_child_of(child), SIGKILL, NULL);
}

/* --- birth --------------------------------------------------------------------------------- */

static struct sim_child *
sim_child_new(struct children *all, enum child_kind kind)
{
	struct sim_child *child = slots.free;
	uint32_t slot;

	if (child != NULL) {
		slots.free = child->next_free;
		slot = child->c.slot;
	} else {
		child = xcalloc(1, sizeof(*child));
		GROW(slots.items, slots.n, slots.cap);
		slot = (uint32_t)slots.n;
		slots.items[slots.n++] = child;
	}
	*child = (struct sim_child){ .all = all, .account = NOBODY };
	child->c.slot = slot;
	child->c.owner = all;
	child->c.kind = kind;
	child->c.generation = ++slots.generation;
	child->c.pid = ++all->process->actor.machine->next_pid;
	child->actor.machine = all->process->actor.machine;
	child->actor.process = all->process;
	child->actor.generation = child->c.generation;
	child->actor.is_alive = true;
	child->c.timer = event_new(NULL, -1, 0, on_timer, child);
	child->c.born_mono_msecs = child->c.since_mono_msecs =
	    clock_mono_msecs();
	return child;
}

struct child *
child_spawn(struct children *all, enum child_kind kind,
    int64_t deadline_boot_msecs, const void *task, struct err *err)
{
	struct sim_child *child = sim_child_new(all, kind);
	const struct hot_task *hot = task;

	(void)err;
	TAILQ_INSERT_TAIL(&all->list, &child->c, entry);
	all->n++;
	all->n_of[kind]++;
	child->deadline = NEVER;
	if (kind == KIND_HOT) {
		child->account = uuid_number(&hot->account_id);
		child->epoch = hot->epoch;
	}
	slot_set_deadline(child->c.slot, deadline_boot_msecs);
	event_in_msecs(child->c.timer, START_MSECS);
	actor_at(&child->actor, sim.now + random_between(FOR_WORLD, 2, 30),
	    URGENT_REST, says_hello, child, 0);
	return &child->c;
}

/* --- proc/slots.h ------------------------------------------------------------------------------ */

void
slot_set_deadline(uint32_t slot, int64_t deadline)
{
	struct sim_child *child = slots.items[slot];

	if (!child->actor.is_alive || child->deadline == deadline)
		return;
	child->deadline = deadline;
	if (child->account != NOBODY)
		watch_child(child->all->process, child->account, child,
		    deadline);
	if (deadline != NEVER)
		actor_at(&child->actor, machine_time_of_boot(child->actor.machine,
		    deadline + (sim.broken == BREAK_MONO ?
			child->actor.machine->slept : 0)), URGENT_DEADLINE,
		    deadline_rings, child, (uint64_t)deadline);
}

void
slot_clear_note(uint32_t slot)
{
	(void)slot;
}

void
slot_read_note(uint32_t slot, struct slot_note *note_r)
{
	(void)slot;
	*note_r = (struct slot_note){ .step = 0 };
}

/* --- the table ------------------------------------------------------------------------------------ */

struct children *
children_new(const struct children_params *params)
{
	struct children *all = xcalloc(1, sizeof(*all));

	all->m = params->arg;
	all->process = process_of(all->m);
	TAILQ_INIT(&all->list);
	return all;
}

void
children_free(struct children **all_p)
{
	struct children *all = *all_p;

	if (all == NULL)
		return;
	*all_p = NULL;
	free(all);
}

/* PR_SET_PDEATHSIG; nobody reaps them. */
void
children_end_all(struct process *process)
{
	struct children *all = process->m.children;
	struct sim_child *child;

	while ((child = (struct sim_child *)TAILQ_FIRST(&all->list)) != NULL) {
		TAILQ_REMOVE(&all->list, &child->c, entry);
		event_free(child->c.timer);
		child_dies(child, SIGKILL, NULL);
		child->next_free = slots.free;
		slots.free = child;
	}
	all->n = 0;
}

struct sim_child *
children_random(struct process *process)
{
	struct children *all = process->m.children;
	struct child *child = TAILQ_FIRST(&all->list);
	uint32_t n = random_below(FOR_PLAN, (uint32_t)all->n);

	while (child != NULL && n-- > 0)
		child = TAILQ_NEXT(child, entry);
	return child != NULL && sim_child_of(child)->actor.is_alive ?
	    sim_child_of(child) : NULL;
}

static void
thaws(void *arg, uint64_t generation)
{
	struct sim_child *child = arg;

	if (child->actor.is_alive && child->actor.generation == generation)
		actor_thaw(&child->actor);
}

void
child_freeze(struct sim_child *child, int64_t msecs)
{
	tell("child %d of account %d: stopped for %lld ms",
	    (int)child->c.pid, (int)child->account, (long long)msecs);
	actor_freeze(&child->actor);
	world_at(sim.now + msecs, thaws, child, child->actor.generation);
}

void
children_freeze_all(struct process *process, bool is_frozen)
{
	struct child *child;

	TAILQ_FOREACH(child, &process->m.children->list, entry) {
		if (!sim_child_of(child)->actor.is_alive)
			continue;
		if (is_frozen)
			actor_freeze(&sim_child_of(child)->actor);
		else
			actor_thaw(&sim_child_of(child)->actor);
	}
}

size_t
children_count(const struct children *all)
{
	return all->n;
}

bool
children_have_room(const struct children *all)
{
	(void)all;
	return true;
}

size_t
children_of(const struct children *all, enum child_kind kind)
{
	return all->n_of[kind];
}

struct child *
children_first(const struct children *all)
{
	return TAILQ_FIRST(&all->list);
}

struct child *
child_next(const struct child *child)
{
	return TAILQ_NEXT(child, entry);
}

void
children_reset(void)
{
	struct transaction *t;
	size_t i;

	while ((t = LIST_FIRST(&transactions)) != NULL) {
		LIST_REMOVE(t, entry);
		free(t);
	}
	for (i = 0; i < slots.n; i++)
		free(slots.items[i]);
	free(slots.items);
	free(slots.idle);
	memset(&slots, 0, sizeof(slots));
	if (sim.n_accounts > 0)
		slots.idle = xcalloc(sim.n_accounts, sizeof(*slots.idle));
}
