/*
 * release.c - letting go of accounts, and losing them.
 *
 * Runs in: master of the sync role.  Never blocks.
 */
#include "master/release.h"

#include "base/clock.h"
#include "lease/keeper.h"
#include "master/accounts.h"
#include "master/children.h"
#include "master/state.h"

#include <bsd/string.h>

#include <stdlib.h>

/* Leases lost at one moment: a line for each up to so many. */
#define LOG_EACH_MAX 20

/* --- of our own will ------------------------------------------------------ */

void
release_step(struct account *account, struct master *m)
{
	struct uuid id = account->id;
	int64_t avoid = account->avoid_msecs;

	if (account->state != OWNERSHIP_LEAVING || account->hot != NULL ||
	    account->pool != NULL)
		return;
	log_info(&account->log, "account released: %s", account->leave_why);
	accounts_forget(m->accounts, account);
	keeper_release(m->keeper, &id, avoid);
}

void
release_account(struct account *account, struct master *m, const char *why,
    int64_t avoid_msecs)
{
	if (account->state == OWNERSHIP_LEAVING)
		return;
	account->state = OWNERSHIP_LEAVING;
	account->avoid_msecs = avoid_msecs;
	strlcpy(account->leave_why, why, sizeof(account->leave_why));
	if (account->hot != NULL)
		child_stop(account->hot, why);
	if (account->pool != NULL)
		child_stop(account->pool, why);
	release_step(account, m);
}

void
release_all(struct master *m, const char *why)
{
	struct account **list;
	size_t i, n;

	list = accounts_list(m->accounts, &n);
	for (i = 0; i < n; i++)
		release_account(list[i], m, why, 0);
	free(list);
}

static int64_t
release_last_activity(const struct account *account)
{
	const struct tier_facts *facts = &account->facts;

	if (account->state == OWNERSHIP_LEAVING) /* counts, and goes anyway */
		return INT64_MIN;
	if (account->session_until_mono > clock_mono_msecs())
		return INT64_MAX;
	return facts->last_mail_secs > facts->last_active_secs ?
	    facts->last_mail_secs : facts->last_active_secs;
}

static int
release_by_activity(const void *va, const void *vb)
{
	int64_t a = release_last_activity(*(struct account *const *)va);
	int64_t b = release_last_activity(*(struct account *const *)vb);

	return a < b ? -1 : a > b;
}

void
release_excess(struct master *m, size_t excess)
{
	struct account **list;
	size_t i, n;

	list = accounts_list(m->accounts, &n);
	qsort(list, n, sizeof(struct account *), release_by_activity);
	log_info(NULL, "rebalance: releasing %zu of %zu accounts", excess, n);
	for (i = 0; i < n && i < excess; i++)
		release_account(list[i], m, "rebalance",
		    (m->conf->claim_interval + m->conf->claim_jitter) * 3000);
	free(list);
}

/* --- against it ----------------------------------------------------------- */

/* Before anything else, for all of them (R-LEASE-5). */
static void
release_kill_children(struct master *m, const struct uuid *ids, size_t n)
{
	const struct account *account;
	size_t i;

	for (i = 0; i < n; i++) {
		account = account_find(m->accounts, &ids[i]);
		if (account != NULL && account->hot != NULL)
			child_kill(account->hot, "lease lost");
		if (account != NULL && account->pool != NULL)
			child_kill(account->pool, "lease lost");
	}
}

void
release_lost(struct master *m, const struct uuid *ids, size_t n,
    enum lease_end how)
{
	struct account *account;
	size_t i;

	release_kill_children(m, ids, n);
	if (n > LOG_EACH_MAX)
		log_warn(NULL, "%zu leases lost, children killed: %s", n,
		    lease_end_describe(how));
	for (i = 0; i < n; i++) {
		account = account_find(m->accounts, &ids[i]);
		if (account == NULL)
			continue;
		m->counters.leases_lost++;
		if (how == LEASE_FENCED)
			m->counters.fenced++;
		if (n <= LOG_EACH_MAX)
			log_warn(&account->log,
			    "lease lost, children killed: %s",
			    lease_end_describe(how));
		else
			log_debug(&account->log, "lease lost");
		accounts_forget(m->accounts, account);
	}
}
