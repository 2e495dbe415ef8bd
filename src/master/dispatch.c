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
#include "lease/loop.h"
#include "master/accounts.h"
#include "master/children.h"
#include "master/grants.h"

#include <bsd/string.h>

#include <stdlib.h>
#include <strings.h>

/* At the latest, look again. */
#define LOOK_MSECS 60000
/* A fork of the master takes about a millisecond: not all in one turn. */
#define FORKS_A_TURN 10
/* An idle pool child above pool_min is kept so long. */
#define LINGER_MSECS 30000
/* Room for IDLE at a full host is looked for so often. */
#define NO_IDLE_MSECS 30000

struct due {
	struct account *account;
	int64_t since;
	unsigned scope;
};

struct turn {
	struct master *m;
	int64_t now, next;
	unsigned forks;
	struct due *due;
	size_t n_due, cap_due;
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
	int64_t msecs = conf->command_timeout * 1000 * 15;

	/* A hot child looks, and tells, when its IDLE is begun anew. */
	return kind == KIND_HOT ? msecs + conf->idle_restart_secs * 2000 :
	    msecs;
}

/* --- hot children ------------------------------------------------------- */

static size_t
hot_at_host(const struct accounts *accounts, const char *host)
{
	struct account *account;
	size_t at, n = 0;

	for (at = 0; (account = idmap_next(&accounts->map, &at, NULL)) != NULL;)
		if (account->hot != NULL &&
		    strcasecmp(account->host, host) == 0)
			n++;
	return n;
}

static void
start_hot(struct turn *turn, struct account *account)
{
	struct hot_task task = { .account_id = account->id,
		.epoch = account->epoch };
	struct master *m = turn->m;
	struct err err = ERR_INIT;
	struct child *child;

	strlcpy(task.email, account->email, sizeof(task.email));
	turn->forks++;
	child = child_spawn(m->children, KIND_HOT,
	    account->deadline_boot_msecs, &task, &err);
	if (child == NULL) {
		log_error(&account->log, "%s", err.text);
		account->hot_not_before_mono = turn->now + NO_IDLE_MSECS;
		return;
	}
	m->counters.child_starts++;
	child->account = account;
	child->account_id = account->id;
	account->hot = child;
	account->has_no_idle = false;
	logins_note(&account->logins, turn->now);
	log_debug(&account->log, "hot child started pid=%d", (int)child->pid);
}

static int64_t
hot_may_start(const struct account *account)
{
	return account->hot_not_before_mono > account->not_before_mono ?
	    account->hot_not_before_mono : account->not_before_mono;
}

static void
place_hot(struct turn *turn, struct account *account)
{
	struct master *m = turn->m;

	if (account->tier != TIER_HOT) {
		if (account->hot != NULL)
			child_stop(account->hot, "no longer hot");
		return;
	}
	/* While the login is refused one attempt at a time is enough. */
	if (account->hot != NULL || account->refusals > 0)
		return;
	if (turn->now < hot_may_start(account)) {
		look_at(turn, hot_may_start(account));
		return;
	}
	if (turn->forks >= FORKS_A_TURN) {
		look_at(turn, turn->now);
		return;
	}
	if (hot_at_host(m->accounts, account->host) >=
	    grants_idle_cap(m->conf, account->host)) {
		if (!account->has_no_idle)
			log_info(&account->log, "no room for IDLE at host=%s, "
			    "polled often instead", account->host);
		account->has_no_idle = true;
		account->hot_not_before_mono = turn->now + NO_IDLE_MSECS;
		look_at(turn, account->hot_not_before_mono);
		return;
	}
	start_hot(turn, account);
}

/* --- polls -------------------------------------------------------------- */

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

	strlcpy(start.email, account->email, sizeof(start.email));
	slot_clear_note(child->slot);
	slot_set_deadline(child->slot, account->deadline_boot_msecs);
	child_works(child, silence_msecs(turn->m->conf, KIND_POOL));
	child->account = account;
	child->account_id = account->id;
	child->has_reported = false;
	account->pool = child;
	account->pool_scope = due->scope;
	logins_note(&account->logins, turn->now);
	if (child_send(child, MSG_POLL_START, &start) == -1)
		child_kill(child, "took no work");
}

static struct child *
next_free(struct child *child)
{
	while (child != NULL && (child->kind != KIND_POOL ||
	    child->state != CHILD_READY || child->is_old))
		child = child_next(child);
	return child;
}

static size_t
count_pool(const struct master *m, enum child_state state)
{
	const struct child *child;
	size_t n = 0;

	for (child = children_first(m->children); child != NULL;
	    child = child_next(child))
		if (child->kind == KIND_POOL && child->state == state)
			n++;
	return n;
}

static void
fork_pool(struct turn *turn, size_t wanted)
{
	struct master *m = turn->m;
	size_t starting = count_pool(m, CHILD_STARTING);
	struct err err = ERR_INIT;

	if (turn->now < m->accounts->no_fork_until_mono) {
		if (starting < wanted)
			look_at(turn, m->accounts->no_fork_until_mono);
		return;
	}
	while (starting < wanted && turn->forks < FORKS_A_TURN &&
	    children_of(m->children, KIND_POOL) < (size_t)m->conf->pool_max) {
		turn->forks++;
		if (child_spawn(m->children, KIND_POOL, DEADLINE_NONE, NULL,
			&err) == NULL) {
			log_error(NULL, "%s", err.text);
			look_at(turn, turn->now + 1000);
			return;
		}
		m->counters.child_starts++;
		starting++;
	}
}

static void
place_polls(struct turn *turn)
{
	struct child *child = next_free(children_first(turn->m->children));
	struct child *next;
	size_t i;

	if (turn->n_due > 1)
		qsort(turn->due, turn->n_due, sizeof(*turn->due), by_time);
	for (i = 0; i < turn->n_due && child != NULL; i++) {
		next = next_free(child_next(child));
		start_pass(turn, child, &turn->due[i]);
		child = next;
	}
	/* The rest is looked at when a child becomes ready. */
	fork_pool(turn, turn->n_due - i);
}

/* Idle children above pool_min end after a while, old ones at once. */
static void
trim_pool(struct turn *turn)
{
	struct child *child, *next;
	size_t idle = count_pool(turn->m, CHILD_READY);

	for (child = next_free(children_first(turn->m->children));
	    child != NULL && idle > (size_t)turn->m->conf->pool_min;
	    child = next) {
		next = next_free(child_next(child));
		if (turn->now - child->since_mono_msecs < LINGER_MSECS) {
			look_at(turn, child->since_mono_msecs + LINGER_MSECS);
			continue;
		}
		child_stop(child, "not needed");
		idle--;
	}
}

/* --- the hot budget ----------------------------------------------------- */

static size_t
hot_candidates(struct master *m, struct hot_candidate *candidates,
    struct account **list)
{
	struct account *account;
	size_t at, n = 0;
	const char *rule;

	for (at = 0; (account = idmap_next(&m->accounts->map, &at, NULL)) !=
	    NULL;) {
		if (account->state != ACCOUNT_OWNED ||
		    policy_tier(m->conf, &account->facts, clock_wall_secs(),
			&rule) != TIER_HOT)
			continue;
		list[n] = account;
		candidates[n] = (struct hot_candidate){
			.index = n,
			.last_activity_secs =
			    account->facts.last_mail_secs >
				account->facts.last_active_secs ?
			    account->facts.last_mail_secs :
			    account->facts.last_active_secs,
			.is_exempt = account->facts.has_session ||
			    account->facts.is_pinned,
		};
		n++;
	}
	return n;
}

static void
apply_budget(struct master *m)
{
	size_t i, n, within, all = accounts_count(m->accounts) + 1;
	struct hot_candidate *candidates = xcalloc(all, sizeof(*candidates));
	struct account **list = xcalloc(all, sizeof(struct account *));
	struct account *account;

	m->accounts->is_budget_stale = false;
	n = hot_candidates(m, candidates, list);
	within = policy_budget(candidates, n,
	    (size_t)m->conf->hot_budget_per_worker);
	for (i = 0; i < n; i++) {
		account = list[candidates[i].index];
		if (account->is_over_budget == (i >= within))
			continue;
		account->is_over_budget = i >= within;
		account_evaluate(account, m);
	}
	m->accounts->is_budget_stale = false; /* by our own changes */
	free(candidates);
	free(list);
}

/* --- the turn ----------------------------------------------------------- */

void
dispatch_run(int fd, short what, void *arg)
{
	struct master *m = arg;
	struct turn turn = { .m = m, .now = clock_mono_msecs() };
	struct account *account;
	size_t at;

	(void)fd;
	(void)what;
	if (m->is_stopping)
		return;
	turn.next = turn.now + LOOK_MSECS;
	if (m->accounts->is_budget_stale)
		apply_budget(m);
	for (at = 0; (account = idmap_next(&m->accounts->map, &at, NULL)) !=
	    NULL;) {
		if (account->state != ACCOUNT_OWNED)
			continue;
		place_hot(&turn, account);
		note_due(&turn, account);
	}
	place_polls(&turn);
	trim_pool(&turn);
	free(turn.due);
	event_in_msecs(m->accounts->run, turn.next - turn.now);
}

void
dispatch_soon(struct master *m)
{
	if (m->accounts != NULL && !m->is_stopping)
		event_in_msecs(m->accounts->run, 0);
}
