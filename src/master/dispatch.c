/*
 * dispatch.c - who works for which account now.
 *
 * Runs in: master of the sync role.  Never blocks.
 *
 * One function looks at all accounts whenever something may be due, starts and
 * stops hot children, gives due polls to pool children in order of their time,
 * and sleeps until the next moment of interest.  A walk over 10,000 accounts
 * is far cheaper than the bookkeeping that would avoid it, and nothing can be
 * forgotten.
 */
#include "master/dispatch.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "child/child.h" /* struct hot_task */
#include "master/accounts.h"
#include "master/budgets.h"
#include "master/children.h"
#include "master/hosts.h"
#include "master/pool.h"
#include "master/state.h"
#include "master/takeover.h"
#include "master/tiers.h"

#include <bsd/string.h>

#include <stdlib.h>

/* At the latest, look again. */
#define LOOK_MSECS 60000
/* A fork of the master takes about a millisecond: not all in one turn. */
#define FORKS_A_TURN 10
/* An idle poll child above pool_min is kept so long. */
#define LINGER_MSECS 30000
/* Due polls without a child: one becomes ready, and wakes us, or this. */
#define NO_CHILD_YET_MSECS 1000
/* A host that throttles us has no room: look again. */
#define THROTTLED_MSECS 1000
/* Hot children wait for their turn at the host: look again. */
#define HOT_FIRST_MSECS 200
/* A hot child could not be asked for: until the next. */
#define REFUSED_MSECS 5000
/* As many children are being made as may be at once: look again. */
#define NO_ROOM_MSECS 50

struct due {
	struct account *account;
	int64_t since;
	unsigned scope;
};

struct turn {
	struct master *m;
	int64_t now, next;
	unsigned forks_left;
	struct due *due;
	size_t n_due, cap_due;
	struct account **hot; /* to get a hot child */
	size_t n_hot, cap_hot;
};

static void
dispatch_look_at(struct turn *turn, int64_t when)
{
	if (when < turn->next)
		turn->next = when;
}

int64_t
dispatch_silence_msecs(const struct conf *conf, enum child_kind kind)
{
	/* A pass tells what it does now and then; several commands may pass
	 * before it finds something to tell. */
	int64_t msecs = conf->command_timeout * 1000 * 15 +
	    conf->select_timeout * 1000;

	/* A hot child looks, and tells, when its IDLE is begun anew. */
	return kind == KIND_HOT ? msecs + conf->idle_restart_secs * 2000 :
	    msecs;
}

static bool
dispatch_may_fork(const struct turn *turn)
{
	return turn->forks_left > 0 &&
	    children_have_room(turn->m->children);
}

static int64_t
dispatch_next_fork(const struct turn *turn)
{
	return children_have_room(turn->m->children) ? turn->now :
	    turn->now + NO_ROOM_MSECS;
}

/* --- hot children ------------------------------------------------------- */

static void
hot_start(struct turn *turn, struct account *account)
{
	struct hot_task task = { .account_id = account->id,
		.epoch = account->epoch };
	struct master *m = turn->m;
	struct err err = ERR_INIT;
	struct child *child;

	strlcpy(task.owner, m->worker_id, sizeof(task.owner));
	strlcpy(task.email, account->email, sizeof(task.email));
	turn->forks_left--;
	child = child_spawn(m->children, KIND_HOT,
	    account->deadline_boot_msecs, &task, &err);
	if (child == NULL) {
		log_error(&account->log, "%s", err.text);
		health_hot_pause(&account->health, turn->now + REFUSED_MSECS);
		dispatch_look_at(turn, turn->now + REFUSED_MSECS);
		return;
	}
	m->counters.child_starts++;
	child->account = account;
	child->account_id = account->id;
	account->hot = child;
	/* The first one only: what failed shall not hold up the passes. */
	if (account->health.hot_not_before_mono == 0)
		policy_hot_looks(m->conf, turn->now, arc4random(),
		    &account->schedule);
	host_begins(account->server, m->conf, turn->now);
	log_debug(&account->log, "hot child asked for");
}

/* Not all at once: 200 good-byes are a storm, too. */
static void
hot_end(struct turn *turn, struct account *account)
{
	int64_t ready = host_ready(account->server, turn->m->conf, turn->now);

	if (account->no_idle != IDLE_ALLOWED) {
		child_stop(account->hot, no_idle_name(account->no_idle));
	} else if (ready > turn->now) {
		dispatch_look_at(turn, ready);
	} else if (account->hot->state != CHILD_STOPPING) {
		host_begins(account->server, turn->m->conf, turn->now);
		child_stop(account->hot, "no longer hot");
	}
}

static void
hot_place(struct turn *turn, struct account *account)
{
	bool may = account->tier == TIER_HOT &&
	    account->no_idle == IDLE_ALLOWED;

	if (account->hot != NULL) {
		if (!may)
			hot_end(turn, account);
		return;
	}
	/* While the login is refused one attempt at a time is enough. */
	if (!may || account->health.refusals > 0)
		return;
	if (turn->now < health_hot_next(&account->health)) {
		dispatch_look_at(turn, health_hot_next(&account->health));
		return;
	}
	GROW(turn->hot, turn->n_hot, turn->cap_hot);
	turn->hot[turn->n_hot++] = account;
}

/* Somebody is waiting before a screen: those first. */
static int
hot_by_session(const void *va, const void *vb)
{
	const struct account *a = *(struct account *const *)va;
	const struct account *b = *(struct account *const *)vb;

	return (int)b->facts.has_session - (int)a->facts.has_session;
}

static void
hot_start_all(struct turn *turn)
{
	struct account *account;
	int64_t ready;
	size_t i;

	if (turn->n_hot > 1)
		qsort(turn->hot, turn->n_hot, sizeof(struct account *),
		    hot_by_session);
	for (i = 0; i < turn->n_hot; i++) {
		account = turn->hot[i];
		ready = host_ready(account->server, turn->m->conf, turn->now);
		if (ready <= turn->now && dispatch_may_fork(turn)) {
			hot_start(turn, account);
			continue;
		}
		host_hot_waits(account->server, turn->now);
		dispatch_look_at(turn, ready > turn->now ? ready :
		    dispatch_next_fork(turn));
	}
}

/* --- polls -------------------------------------------------------------- */

static size_t
polls_min(const struct conf *conf)
{
	return (size_t)conf->pool_min;
}

static size_t
polls_max(const struct conf *conf)
{
	return (size_t)conf->pool_max;
}

static int64_t
polls_pause(const struct conf *conf, unsigned n)
{
	return policy_pause(conf, ERR_TEMPORARY, n, 0, arc4random());
}

const struct pool_rules dispatch_polls = {
	.kind = KIND_POOL, .min = polls_min, .max = polls_max,
	.linger_msecs = LINGER_MSECS, .pause = polls_pause,
};

static void
polls_note_due(struct turn *turn, struct account *account)
{
	int64_t since = policy_next(&account->schedule);
	int64_t may = account->health.not_before_mono;
	struct due *due;

	if (account->pool != NULL)
		return; /* looked at when it ends */
	if (since < may)
		since = may;
	if (since > turn->now) {
		dispatch_look_at(turn, since);
		return;
	}
	GROW(turn->due, turn->n_due, turn->cap_due);
	due = &turn->due[turn->n_due++];
	due->account = account;
	due->since = since;
	due->scope = policy_due(&account->schedule,
	    account_is_idling(account), turn->now);
}

static int
polls_by_time(const void *va, const void *vb)
{
	const struct due *a = va, *b = vb;

	return a->since < b->since ? -1 : a->since > b->since;
}

static void
polls_start_pass(struct turn *turn, struct child *child, const struct due *due)
{
	struct account *account = due->account;
	struct msg_poll_start start = {
		.account_id = account->id,
		.epoch = account->epoch,
		.scope = due->scope,
		.slot = child->slot,
	};

	strlcpy(start.owner, turn->m->worker_id, sizeof(start.owner));
	strlcpy(start.email, account->email, sizeof(start.email));
	slot_clear_note(child->slot);
	slot_set_deadline(child->slot, account->deadline_boot_msecs);
	child_works(child, dispatch_silence_msecs(turn->m->conf, KIND_POOL));
	child->account = account;
	child->account_id = account->id;
	child->has_reported = false;
	account->pool = child;
	account->pool_scope = due->scope;
	host_begins(account->server, turn->m->conf, turn->now);
	if (child_send(child, MSG_POLL_START, &start) == -1)
		child_kill(child, "took no work");
}

/* A host that wants fewer of us is not asked for one more (R-CONN-3). */
static int64_t
polls_ready(const struct turn *turn, const struct account *account)
{
	const struct master *m = turn->m;

	if (host_throttled_until(account->server, m->conf, turn->now) != 0 &&
	    budgets_host_in_use(m->budgets, account->host) >=
		host_cap(account->server, m->conf, turn->now))
		return turn->now + THROTTLED_MSECS;
	if (host_has_hot_waiting(account->server, turn->now))
		return turn->now + HOT_FIRST_MSECS;
	return host_ready(account->server, m->conf, turn->now);
}

static void
polls_place(struct turn *turn)
{
	struct child *child, *next;
	size_t i, wanted = 0;
	int64_t ready;

	if (turn->n_due == 0)
		return;
	child = pool_idle(turn->m->polls);
	if (turn->n_due > 1)
		qsort(turn->due, turn->n_due, sizeof(*turn->due),
		    polls_by_time);
	for (i = 0; i < turn->n_due; i++) {
		ready = polls_ready(turn, turn->due[i].account);
		if (ready > turn->now) {
			dispatch_look_at(turn, ready);
		} else if (child == NULL) {
			wanted++;
		} else {
			next = pool_next_idle(child);
			polls_start_pass(turn, child, &turn->due[i]);
			child = next;
		}
	}
	if (wanted > 0)
		dispatch_look_at(turn, turn->now + NO_CHILD_YET_MSECS);
	dispatch_look_at(turn,
	    pool_grow(turn->m->polls, wanted, &turn->forks_left, turn->now));
}

/* --- taking over --- */

static void
dispatch_take_again(struct turn *turn, struct account *account)
{
	if (account->is_asked)
		return;
	if (account->health.not_before_mono <= turn->now)
		takeover_ask(account, turn->m);
	else
		dispatch_look_at(turn, account->health.not_before_mono);
}

/* --- the turn ----------------------------------------------------------- */

void
dispatch_run(struct master *m)
{
	struct turn turn = { .m = m, .now = clock_mono_msecs(),
		.forks_left = FORKS_A_TURN };
	int64_t boot = clock_boot_msecs();
	struct account *account;
	size_t at;

	turn.next = turn.now + LOOK_MSECS;
	if (accounts_budget_is_stale(m->accounts))
		tiers_share_out(m);
	accounts_look_begins(m->accounts); /* the walk sees it all */
	for (at = 0; (account = accounts_next(m->accounts, &at)) != NULL;) {
		/* Past its deadline it is not ours: about to be lost. */
		if (account->deadline_boot_msecs <= boot)
			continue;
		if (account->state == OWNERSHIP_TAKING)
			dispatch_take_again(&turn, account);
		if (account->state != OWNERSHIP_OWNED)
			continue;
		hot_place(&turn, account);
		polls_note_due(&turn, account);
	}
	hot_start_all(&turn);
	polls_place(&turn);
	dispatch_look_at(&turn, pool_trim(m->polls, turn.now));
	free(turn.hot);
	free(turn.due);
	accounts_look_ends(m->accounts, turn.next - turn.now);
}
