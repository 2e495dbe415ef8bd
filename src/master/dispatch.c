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
#include "redis/loop.h"
#include "master/accounts.h"
#include "master/children.h"
#include "master/grants.h"
#include "master/hosts.h"
#include "master/pool.h"
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
/* A host that is spared has no room: look again. */
#define SPARED_MSECS 1000
/* Hot children wait for their turn at the host: look again. */
#define HOT_FIRST_MSECS 200
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
look_at(struct turn *turn, int64_t when)
{
	if (when < turn->next)
		turn->next = when;
}

bool
account_is_idling(const struct account *account)
{
	return account->hot != NULL && account->hot->idling_since_mono != 0 &&
	    account->hot->state == CHILD_WORKING;
}

int64_t
silence_msecs(const struct conf *conf, enum child_kind kind)
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
may_fork(const struct turn *turn)
{
	return turn->forks_left > 0 &&
	    children_have_room(turn->m->children);
}

static int64_t
next_fork(const struct turn *turn)
{
	return children_have_room(turn->m->children) ? turn->now :
	    turn->now + NO_ROOM_MSECS;
}

/* --- hot children ------------------------------------------------------- */

static void
start_hot(struct turn *turn, struct account *account)
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
		account->hot_not_before_mono = turn->now + UNMADE_MSECS;
		look_at(turn, account->hot_not_before_mono);
		return;
	}
	m->counters.child_starts++;
	child->account = account;
	child->account_id = account->id;
	account->hot = child;
	/* The first one only: what failed shall not hold up the passes. */
	if (account->hot_not_before_mono == 0)
		policy_hot_looks(m->conf, turn->now, arc4random(),
		    &account->schedule);
	host_begins(account->server, m->conf, turn->now);
	log_debug(&account->log, "hot child asked for");
}

int64_t
account_hot_next(const struct account *account)
{
	return account->hot_not_before_mono > account->not_before_mono ?
	    account->hot_not_before_mono : account->not_before_mono;
}

/* Not all at once: 200 good-byes are a storm, too. */
static void
end_hot(struct turn *turn, struct account *account)
{
	int64_t ready = host_ready(account->server, turn->m->conf, turn->now);

	if (account->no_idle != IDLE_ALLOWED) {
		child_stop(account->hot, no_idle_name(account->no_idle));
	} else if (ready > turn->now) {
		look_at(turn, ready);
	} else if (account->hot->state != CHILD_STOPPING) {
		host_begins(account->server, turn->m->conf, turn->now);
		child_stop(account->hot, "no longer hot");
	}
}

static void
place_hot(struct turn *turn, struct account *account)
{
	bool may = account->tier == TIER_HOT &&
	    account->no_idle == IDLE_ALLOWED;

	if (account->hot != NULL) {
		if (!may)
			end_hot(turn, account);
		return;
	}
	/* While the login is refused one attempt at a time is enough. */
	if (!may || account->refusals > 0)
		return;
	if (turn->now < account_hot_next(account)) {
		look_at(turn, account_hot_next(account));
		return;
	}
	GROW(turn->hot, turn->n_hot, turn->cap_hot);
	turn->hot[turn->n_hot++] = account;
}

/* Somebody is waiting before a screen: those first. */
static int
by_session(const void *va, const void *vb)
{
	const struct account *a = *(struct account *const *)va;
	const struct account *b = *(struct account *const *)vb;

	return (int)b->facts.has_session - (int)a->facts.has_session;
}

static void
start_hots(struct turn *turn)
{
	struct account *account;
	int64_t ready;
	size_t i;

	if (turn->n_hot > 1)
		qsort(turn->hot, turn->n_hot, sizeof(struct account *),
		    by_session);
	for (i = 0; i < turn->n_hot; i++) {
		account = turn->hot[i];
		ready = host_ready(account->server, turn->m->conf, turn->now);
		if (ready <= turn->now && may_fork(turn)) {
			start_hot(turn, account);
			continue;
		}
		host_hot_waits(account->server, turn->now);
		look_at(turn, ready > turn->now ? ready :
		    next_fork(turn));
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
note_due(struct turn *turn, struct account *account)
{
	int64_t since = policy_next(&account->schedule);
	int64_t may = account->not_before_mono;
	struct due *due;

	if (account->pool != NULL)
		return; /* looked at when it ends */
	if (since < may)
		since = may;
	if (since > turn->now) {
		look_at(turn, since);
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
by_time(const void *va, const void *vb)
{
	const struct due *a = va, *b = vb;

	return a->since < b->since ? -1 : a->since > b->since;
}

static void
start_pass(struct turn *turn, struct child *child, const struct due *due)
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
	child_works(child, silence_msecs(turn->m->conf, KIND_POOL));
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
poll_ready(const struct turn *turn, const struct account *account)
{
	const struct master *m = turn->m;

	if (host_spared_until(account->server, m->conf, turn->now) != 0 &&
	    grants_host_in_use(m->grants, account->host) >=
		host_cap(account->server, m->conf, turn->now))
		return turn->now + SPARED_MSECS;
	if (host_has_hot_waiting(account->server, turn->now))
		return turn->now + HOT_FIRST_MSECS;
	return host_ready(account->server, m->conf, turn->now);
}

static void
place_polls(struct turn *turn)
{
	struct child *child, *next;
	size_t i, wanted = 0;
	int64_t ready;

	if (turn->n_due == 0)
		return;
	child = pool_idle(turn->m->polls);
	if (turn->n_due > 1)
		qsort(turn->due, turn->n_due, sizeof(*turn->due), by_time);
	for (i = 0; i < turn->n_due; i++) {
		ready = poll_ready(turn, turn->due[i].account);
		if (ready > turn->now) {
			look_at(turn, ready);
		} else if (child == NULL) {
			wanted++;
		} else {
			next = pool_next_idle(child);
			start_pass(turn, child, &turn->due[i]);
			child = next;
		}
	}
	if (wanted > 0)
		look_at(turn, turn->now + NO_CHILD_YET_MSECS);
	look_at(turn, pool_grow(turn->m->polls, wanted, &turn->forks_left,
	    turn->now));
}

/* --- taking over --- */

static void
take_again(struct turn *turn, struct account *account)
{
	if (account->is_asked)
		return;
	if (account->not_before_mono <= turn->now)
		account_take(account, turn->m);
	else
		look_at(turn, account->not_before_mono);
}

/* --- the turn ----------------------------------------------------------- */

void
dispatch_run(int fd, short what, void *arg)
{
	struct master *m = arg;
	struct turn turn = { .m = m, .now = clock_mono_msecs(),
		.forks_left = FORKS_A_TURN };
	int64_t boot = clock_boot_msecs();
	struct account *account;
	size_t at;

	(void)fd;
	(void)what;
	if (m->is_stopping)
		return;
	turn.next = turn.now + LOOK_MSECS;
	if (m->accounts->is_budget_stale)
		tiers_share_out(m);
	m->accounts->is_wanted = false; /* the walk sees it all */
	for (at = 0; (account = idmap_next(&m->accounts->map, &at, NULL)) !=
	    NULL;) {
		/* Past its deadline it is not ours: about to be lost. */
		if (account->deadline_boot_msecs <= boot)
			continue;
		if (account->state == ACCOUNT_TAKING)
			take_again(&turn, account);
		if (account->state != ACCOUNT_OWNED)
			continue;
		place_hot(&turn, account);
		note_due(&turn, account);
	}
	start_hots(&turn);
	place_polls(&turn);
	look_at(&turn, pool_trim(m->polls, turn.now));
	free(turn.hot);
	free(turn.due);
	/* What was asked for in this turn comes before what we found. */
	if (m->accounts->is_wanted)
		turn.next = turn.now;
	event_in_msecs(m->accounts->run, turn.next - turn.now);
}

void
dispatch_soon(struct master *m)
{
	if (m->is_stopping)
		return;
	m->accounts->is_wanted = true;
	event_in_msecs(m->accounts->run, 0);
}
