/*
 * takeover.c - from a lease that was won to an account that is owned.
 *
 * Runs in: master of the sync role.  Never blocks.
 *
 * TAKING is tried again after a pause when PostgreSQL is there and this one
 * account's row is the trouble: to pass it on would only make the next worker
 * wait for it.
 */
#include "master/takeover.h"

#include "base/clock.h"
#include "base/text.h"
#include "lease/keeper.h"
#include "master/accounts.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/release.h"
#include "master/state.h"
#include "master/tiers.h"

#include <bsd/string.h>

#include <stdlib.h>

/* --- questions ------------------------------------------------------------ */

/* The clerk's question ended without facts. */
static void
takeover_on_done(struct master *m, const struct uuid *id,
    enum err_kind outcome, const char *text)
{
	struct account *account = account_find(m->accounts, id);

	if (account == NULL || account->state != OWNERSHIP_TAKING)
		return;
	account->is_asked = false;
	log_warn(&account->log, "not taken over: %s",
	    outcome != ERR_NONE ? text : "the clerk told no facts");
	if (outcome == ERR_NONE || outcome == ERR_DATABASE) {
		release_account(account, m, "not taken over",
		    m->conf->claim_interval * 1000);
		return;
	}
	health_failed(&account->health, m->conf, outcome, 0, text,
	    clock_mono_msecs());
	accounts_look_soon(m->accounts);
}

static void
takeover_question(const struct account *account, struct master *m,
    enum msg_type type, clerk_on_done on_done)
{
	struct msg_take_over question = { .account_id = account->id };

	strlcpy(question.owner, m->worker_id, sizeof(question.owner));
	clerk_ask(m->clerk, type, &question, sizeof(question), &account->id,
	    on_done);
}

void
takeover_ask(struct account *account, struct master *m)
{
	account->is_asked = true;
	takeover_question(account, m, MSG_TAKE_OVER, takeover_on_done);
}

void
takeover_look_up(struct account *account, struct master *m)
{
	takeover_question(account, m, MSG_LOOK_UP, NULL);
}

void
takeover_begin(struct master *m, const struct uuid *id,
    int64_t deadline_boot_msecs)
{
	takeover_ask(accounts_add(m->accounts, id, deadline_boot_msecs), m);
}

/* --- the answer ----------------------------------------------------------- */

static void
takeover_adopt_facts(struct account *account, struct master *m,
    const struct msg_facts *facts)
{
	struct quirks quirks;

	account->user_id = facts->user_id;
	account_saw_mail(account, m->accounts, facts->last_mail_secs);
	if (facts->last_active_secs > account->facts.last_active_secs)
		account->facts.last_active_secs = facts->last_active_secs;
	text_clean_line(account->email, sizeof(account->email), facts->email,
	    strlen(facts->email));
	account_set_host(account, m->accounts, facts->imap_host);
	quirks_match(m->params.quirks, account->host, NULL, NULL, &quirks);
	account->conn_cap = quirks.conn_cap;
	health_inherit(&account->health, facts, clock_mono_msecs());
}

static void
takeover_complete(struct account *account, struct master *m,
    const struct msg_facts *facts)
{
	account->epoch = facts->epoch;
	account->state = OWNERSHIP_OWNED;
	account_set_log(account);
	policy_start(m->conf, account->tier, clock_mono_msecs(), arc4random(),
	    &account->schedule);
	log_info(&account->log, "account taken over epoch=%lld email=%s",
	    (long long)account->epoch, account->email);
	tiers_ask(account, m);
}

/* false: it is let go. */
static bool
takeover_may_keep(struct account *account, struct master *m,
    const struct msg_facts *facts)
{
	if (!facts->is_found || !facts->is_live) {
		keeper_set_live(m->keeper, &account->id, false);
		release_account(account, m,
		    facts->is_found ? "not live" : "no such account", 0);
		return false;
	}
	/* Only the answer to our own claim makes an epoch ours. */
	if (!facts->is_claim &&
	    (facts->epoch != account->epoch || !facts->is_ours)) {
		m->counters.fenced++;
		release_account(account, m, "fenced: the epoch has moved",
		    m->conf->claim_interval * 1000);
		return false;
	}
	return true;
}

void
takeover_on_facts(struct master *m, const struct msg_facts *facts)
{
	struct account *account = account_find(m->accounts,
	    &facts->account_id);
	bool is_taking;

	if (account == NULL || account->state == OWNERSHIP_LEAVING)
		return; /* lost meanwhile */
	is_taking = account->state == OWNERSHIP_TAKING;
	if (is_taking && !facts->is_claim)
		return; /* our own question follows */
	if (!takeover_may_keep(account, m, facts))
		return;
	if (is_taking)
		health_begin(&account->health);
	takeover_adopt_facts(account, m, facts);
	if (is_taking) {
		takeover_complete(account, m, facts);
	} else if (facts->epoch != account->epoch) {
		/* Asked twice: the children of the first answer are fenced. */
		if (account->hot != NULL)
			child_stop(account->hot, "new epoch");
		account->epoch = facts->epoch;
	}
	accounts_look_soon(m->accounts);
}
