/*
 * ownership.c - which accounts are ours: what the keeper of the leases and the
 * table of accounts tell each other, and who else has a word in it.
 *
 * Runs in: master of the sync role.  Never blocks.
 *
 * The simulation runs this, too: it has a master of its own, but no other way
 * from a lease to an account.
 */
#include "master/ownership.h"

#include "base/clock.h"
#include "lease/hints.h"
#include "lease/keeper.h"
#include "master/accounts.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/dispatch.h"
#include "master/metrics.h"
#include "master/orders.h"
#include "master/pool.h"
#include "master/release.h"
#include "master/takeover.h"
#include "master/tiers.h"
#include "redis/redis.h"

#include <stdlib.h>
#include <string.h>

/* --- the keeper ----------------------------------------------------------- */

static bool
ownership_may_claim(void *arg)
{
	const struct master *m = arg;

	return !m->is_stopping && !m->is_draining && m->is_postgres_up;
}

static void
ownership_on_won(void *arg, const struct uuid *id, int64_t deadline)
{
	takeover_begin(arg, id, deadline);
}

static void
ownership_on_renewed(void *arg, const struct uuid *id, int64_t deadline)
{
	struct master *m = arg;

	accounts_renew(m->accounts, id, deadline);
}

static void
ownership_on_lost(void *arg, const struct uuid *ids, size_t n,
    enum lease_end how)
{
	release_lost(arg, ids, n, how);
}

static void
ownership_on_shed(void *arg, size_t n)
{
	struct master *m = arg;

	if (!m->is_stopping)
		release_excess(m, n);
}

static void
ownership_on_released(void *arg)
{
	struct master *m = arg;

	if (m->is_stopping)
		orders_stop_step(m);
}

/* --- reconcile ------------------------------------------------------------ */

static void
ownership_look_up_unlisted(struct master *m)
{
	struct account *account;
	size_t at;

	for (at = 0; (account = accounts_next(m->accounts, &at)) != NULL;)
		if (account_is_unlisted(account, m->accounts))
			takeover_look_up(account, m);
}

void
ownership_on_live_ids(struct master *m, const struct uuid *ids, size_t n)
{
	keeper_live_ids(m->keeper, ids, n);
	accounts_listed(m->accounts, ids, n);
}

static void
ownership_on_reconciled(struct master *m, const struct uuid *about,
    enum err_kind outcome, const char *text)
{
	(void)about;
	(void)text;
	keeper_live_end(m->keeper, outcome == ERR_NONE);
	if (outcome == ERR_NONE)
		ownership_look_up_unlisted(m);
}

static void
ownership_on_reconcile(void *arg)
{
	struct master *m = arg;
	struct msg_empty empty = { 0 };

	accounts_listing_begins(m->accounts);
	clerk_ask(m->clerk, MSG_RECONCILE, &empty, sizeof(empty), NULL,
	    ownership_on_reconciled);
}

/* It is not in sync:live. */
static void
ownership_on_unlisted(void *arg, const struct uuid *id)
{
	struct master *m = arg;
	struct account *account = account_find(m->accounts, id);

	if (account != NULL && account->state == OWNERSHIP_OWNED)
		takeover_look_up(account, m);
}

/* --- others --------------------------------------------------------------- */

/* Live it was before: new credentials or servers, or a refusal forgiven. */
static void
ownership_hear_still_live(struct account *account, struct master *m,
    const char *reason)
{
	if (account->state != OWNERSHIP_OWNED)
		return;
	if (account->hot != NULL && reason[0] != '\0')
		child_stop(account->hot, reason);
	takeover_look_up(account, m);
}

void
ownership_on_state(struct master *m, const struct uuid *id,
    const char *state, const char *reason)
{
	struct account *account = account_find(m->accounts, id);
	char why[64];

	if (strcmp(state, "live") == 0) {
		if (account != NULL)
			ownership_hear_still_live(account, m, reason);
		keeper_set_live(m->keeper, id, true);
		return;
	}
	keeper_set_live(m->keeper, id, false);
	if (strcmp(state, "deleted") == 0)
		hints_forget(m->redis, id);
	if (account == NULL)
		return;
	snprintf(why, sizeof(why), "account is %.20s %.30s", state, reason);
	release_account(account, m, why, 0);
}

/* Not all at once. */
static void
ownership_end_waits(struct master *m)
{
	int64_t now = clock_mono_msecs();
	struct account *account;
	size_t at;

	for (at = 0; (account = accounts_next(m->accounts, &at)) != NULL;)
		health_postgres_back(&account->health, now + 1 +
		    arc4random_uniform((uint32_t)m->conf->claim_interval *
			1000));
	accounts_look_soon(m->accounts);
}

void
ownership_on_postgres_up(struct master *m)
{
	if (m->is_stopping)
		return;
	ownership_end_waits(m);
	if (redis_is_up(m->redis))
		keeper_redis_up(m->keeper);
}

/* --- life ----------------------------------------------------------------- */

void
ownership_start(struct master *m)
{
	m->accounts = accounts_new(&(struct accounts_params){ .m = m,
	    .on_due = dispatch_run, .on_evaluate = tiers_evaluate_all });
	m->polls = pool_new(m, &dispatch_polls, NULL);
	m->keeper = keeper_new(&(struct keeper_params){ .base = m->base,
	    .redis = m->redis, .conf = m->conf, .worker_id = m->worker_id,
	    .may_claim = ownership_may_claim, .on_won = ownership_on_won,
	    .on_renewed = ownership_on_renewed, .on_lost = ownership_on_lost,
	    .on_released = ownership_on_released,
	    .on_shed = ownership_on_shed,
	    .on_reconcile = ownership_on_reconcile,
	    .on_unlisted = ownership_on_unlisted,
	    .describe = metrics_heartbeat, .arg = m });
}

void
ownership_end(struct master *m)
{
	keeper_free(&m->keeper);
	pool_free(&m->polls);
	accounts_free(&m->accounts);
}
