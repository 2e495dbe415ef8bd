/*
 * ownership.c - which accounts are ours: what the keeper of the leases and the
 * table of accounts tell each other.
 *
 * Runs in: master of the sync role.  Never blocks.
 *
 * The simulation runs this, too: it has a master of its own, but no other way
 * from a lease to an account.
 */
#include "master/ownership.h"

#include "lease/keeper.h"
#include "redis/redis.h"
#include "master/accounts.h"
#include "master/clerk.h"
#include "master/dispatch.h"
#include "master/pool.h"

static bool
may_claim(void *arg)
{
	const struct master *m = arg;

	return !m->is_stopping && !m->is_draining && m->is_postgres_up;
}

static void
on_won(void *arg, const struct uuid *id, int64_t deadline)
{
	struct master *m = arg;

	account_won(m->accounts, id, deadline);
}

static void
on_renewed(void *arg, const struct uuid *id, int64_t deadline)
{
	struct master *m = arg;

	account_renewed(m->accounts, id, deadline);
}

static void
on_lost(void *arg, const struct uuid *ids, size_t n, enum lease_end how)
{
	struct master *m = arg;

	accounts_lost(m->accounts, ids, n, how);
}

static void
on_shed(void *arg, size_t n)
{
	struct master *m = arg;

	if (!m->is_stopping)
		accounts_shed(m->accounts, n);
}

static void
on_released(void *arg)
{
	struct master *m = arg;

	if (m->is_stopping)
		master_stop_step(m);
}

static void
on_reconciled(struct master *m, const struct uuid *about,
    enum err_kind outcome, const char *text)
{
	(void)about;
	(void)text;
	keeper_live_end(m->keeper, outcome == ERR_NONE);
	if (outcome == ERR_NONE)
		accounts_listing_ends(m->accounts);
}

static void
on_reconcile(void *arg)
{
	struct master *m = arg;
	struct msg_empty empty = { 0 };

	accounts_listing_begins(m->accounts);
	clerk_ask(m->clerk, MSG_RECONCILE, &empty, sizeof(empty), NULL,
	    on_reconciled);
}

static void
on_unlisted(void *arg, const struct uuid *id)
{
	struct master *m = arg;

	account_unlisted(m->accounts, id);
}

void
ownership_begin(struct master *m)
{
	m->accounts = accounts_new(m);
	m->polls = pool_new(m, &dispatch_polls, NULL);
	m->keeper = keeper_new(&(struct keeper_params){ .base = m->base,
	    .redis = m->redis, .conf = m->conf, .worker_id = m->worker_id,
	    .may_claim = may_claim, .on_won = on_won,
	    .on_renewed = on_renewed, .on_lost = on_lost,
	    .on_released = on_released, .on_shed = on_shed,
	    .on_reconcile = on_reconcile,
	    .on_unlisted = on_unlisted, .describe = master_describe,
	    .arg = m });
}

void
ownership_end(struct master *m)
{
	keeper_free(&m->keeper);
	pool_free(&m->polls);
	accounts_free(&m->accounts);
}

void
ownership_postgres_back(struct master *m)
{
	if (m->is_stopping)
		return;
	accounts_database_back(m->accounts);
	if (redis_is_up(m->redis))
		keeper_redis_up(m->keeper);
}
