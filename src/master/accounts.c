/*
 * accounts.c - the accounts this worker owns: taking over, letting go.
 *
 * Runs in: master of the sync role.  Never blocks.
 *
 * Who works for an account when is dispatch.c; what a pass or a dead child
 * means for it is verdict.c.
 */
#include "master/accounts.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/xmem.h"
#include "lease/hints.h"
#include "lease/keeper.h"
#include "redis/loop.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/dispatch.h"
#include "master/hosts.h"
#include "master/tiers.h"

#include <bsd/string.h>

#include <stdlib.h>

/* Leases lost at one moment: a line for each up to so many. */
#define LOG_EACH_MAX 20

const char *
ownership_name(enum account_state state)
{
	static const char *const names[] = {
		[ACCOUNT_TAKING] = "taking over",
		[ACCOUNT_OWNED] = "owned",
		[ACCOUNT_LEAVING] = "leaving",
	};

	return names[state];
}

struct account *
account_find(const struct accounts *accounts, const struct uuid *id)
{
	return idmap_get(&accounts->map, id);
}

size_t
accounts_count(const struct accounts *accounts)
{
	return accounts->map.n;
}

size_t
accounts_of_tier(const struct accounts *accounts, enum tier tier)
{
	struct account *account;
	size_t at, n = 0;

	for (at = 0; (account = idmap_next(&accounts->map, &at, NULL)) != NULL;)
		if (account->state == ACCOUNT_OWNED && account->tier == tier)
			n++;
	return n;
}

size_t
accounts_polled_instead(const struct accounts *accounts, enum no_idle why)
{
	struct account *account;
	size_t at, n = 0;

	for (at = 0; (account = idmap_next(&accounts->map, &at, NULL)) != NULL;)
		if (account->state == ACCOUNT_OWNED &&
		    account->tier == TIER_HOT &&
		    account->no_idle != IDLE_ALLOWED &&
		    (why == NO_IDLE_COUNT || account->no_idle == why))
			n++;
	return n;
}

void
account_set_log(struct account *account)
{
	char text[UUID_TEXT_SIZE];

	uuid_format(&account->id, text);
	if (account->state == ACCOUNT_OWNED)
		log_init(&account->log, LOG_CORE, "account_id=%s tier=%s", text,
		    tier_name(account->tier));
	else
		log_init(&account->log, LOG_CORE, "account_id=%s", text);
}

/* --- taking over -------------------------------------------------------- */

/* The clerk's question ended without facts. */
static void
on_taken(struct master *m, const struct uuid *id, enum err_kind outcome,
    const char *text)
{
	struct account *account = account_find(m->accounts, id);

	if (account == NULL || account->state != ACCOUNT_TAKING)
		return;
	account->is_asked = false;
	log_warn(&account->log, "not taken over: %s",
	    outcome != ERR_NONE ? text : "the clerk told no facts");
	if (outcome == ERR_NONE || outcome == ERR_DATABASE) {
		account_leave(account, m, "not taken over",
		    m->conf->claim_interval * 1000);
		return;
	}
	account->not_before_mono = clock_mono_msecs() + policy_pause(m->conf,
	    outcome, ++account->failures, 0, arc4random());
	account->last_error_kind = outcome;
	account->last_error_secs = clock_wall_secs();
	text_clean_line(account->last_error, sizeof(account->last_error),
	    text, strlen(text));
	dispatch_soon(m);
}

void
account_take(struct account *account, struct master *m)
{
	struct msg_take_over question = { .account_id = account->id };

	account->is_asked = true;
	strlcpy(question.owner, m->worker_id, sizeof(question.owner));
	clerk_ask(m->clerk, MSG_TAKE_OVER, &question, sizeof(question),
	    &account->id, on_taken);
}

void
account_won(struct accounts *accounts, const struct uuid *id,
    int64_t deadline_boot_msecs)
{
	struct account *account = xcalloc(1, sizeof(*account));
	struct master *m = accounts->m;

	account->id = *id;
	account->state = ACCOUNT_TAKING;
	account->deadline_boot_msecs = deadline_boot_msecs;
	account->since_mono = clock_mono_msecs();
	account->tier = TIER_WARM;
	account->rule = "just claimed";
	account_set_log(account);
	if (idmap_put(&accounts->map, id, account) != NULL)
		die_bug("account won twice");
	account_take(account, m);
}

static void
take_host(struct account *account, struct master *m, const char *name)
{
	int64_t now = clock_mono_msecs();

	if (account->server != NULL && strcmp(account->host, name) == 0)
		return;
	hosts_put(m->accounts->hosts, &account->server, now);
	text_clean_line(account->host, sizeof(account->host), name,
	    strlen(name));
	account->server = hosts_take(m->accounts->hosts, account->host, now);
	m->accounts->is_budget_stale = true;
}

/* What an earlier owner, or a job, was told by the server; not longer than we
 * would heed it ourselves. */
static void
take_troubles(struct account *account, const struct msg_facts *facts)
{
	int64_t wait = (facts->next_try_secs - clock_wall_secs()) * 1000;

	account->refusals = facts->auth_failures;
	if (facts->auth_failures == 0 && facts->last_error[0] == '\0') {
		/* All is well, or somebody has set it right. */
		account->failures = 0;
		account->last_error_kind = ERR_NONE;
		account->last_error[0] = '\0';
		account->not_before_mono = account->hot_not_before_mono = 0;
		account->logins = (struct logins){ .at = { 0 } };
		return;
	}
	if (wait <= 0 || wait > 86400 * 1000)
		return;
	account->not_before_mono = clock_mono_msecs() + wait;
	account->last_error_kind = facts->auth_failures > 0 ? ERR_AUTH :
	    ERR_THROTTLED;
	text_clean_line(account->last_error, sizeof(account->last_error),
	    facts->last_error, strlen(facts->last_error));
}

static void
take_facts(struct account *account, struct master *m,
    const struct msg_facts *facts)
{
	struct quirks quirks;

	account->user_id = facts->user_id;
	if (facts->last_mail_secs > account->facts.last_mail_secs)
		account->facts.last_mail_secs = facts->last_mail_secs;
	if (facts->last_active_secs > account->facts.last_active_secs)
		account->facts.last_active_secs = facts->last_active_secs;
	text_clean_line(account->email, sizeof(account->email), facts->email,
	    strlen(facts->email));
	take_host(account, m, facts->imap_host);
	quirks_match(m->params.quirks, account->host, NULL, NULL, &quirks);
	account->conn_cap = quirks.conn_cap;
	take_troubles(account, facts);
}

static void
begin_to_own(struct account *account, struct master *m,
    const struct msg_facts *facts)
{
	account->epoch = facts->epoch;
	account->state = ACCOUNT_OWNED;
	account_set_log(account);
	policy_start(m->conf, account->tier, clock_mono_msecs(), arc4random(),
	    &account->schedule);
	log_info(&account->log, "account taken over epoch=%lld email=%s",
	    (long long)account->epoch, account->email);
	tiers_ask(account, m);
}

void
account_facts(struct accounts *accounts, const struct msg_facts *facts)
{
	struct account *account = account_find(accounts, &facts->account_id);
	struct master *m = accounts->m;

	if (account == NULL || account->state == ACCOUNT_LEAVING ||
	    (account->state == ACCOUNT_TAKING && !facts->is_claim))
		return; /* lost meanwhile, or our own question follows */
	if (!facts->is_found || !facts->is_live) {
		keeper_set_live(m->keeper, &account->id, false);
		account_leave(account, m,
		    facts->is_found ? "not live" : "no such account", 0);
		return;
	}
	/* Only the answer to our own claim makes an epoch ours. */
	if (!facts->is_claim &&
	    (facts->epoch != account->epoch || !facts->is_ours)) {
		m->counters.fenced++;
		account_leave(account, m, "fenced: the epoch has moved",
		    m->conf->claim_interval * 1000);
		return;
	}
	if (account->state == ACCOUNT_TAKING) {
		account->failures = 0;
		account->not_before_mono = 0;
		account->last_error_kind = ERR_NONE;
		account->last_error[0] = '\0';
	}
	take_facts(account, m, facts);
	if (account->state == ACCOUNT_TAKING) {
		begin_to_own(account, m, facts);
	} else if (facts->epoch != account->epoch) {
		/* Asked twice: the children of the first answer are fenced. */
		if (account->hot != NULL)
			child_stop(account->hot, "new epoch");
		account->epoch = facts->epoch;
	}
	dispatch_soon(m);
}

/* The row may have changed; the answer comes to account_facts(). */
static void
look_up(struct account *account, struct master *m)
{
	struct msg_take_over question = { .account_id = account->id };

	strlcpy(question.owner, m->worker_id, sizeof(question.owner));
	clerk_ask(m->clerk, MSG_LOOK_UP, &question, sizeof(question), NULL,
	    NULL);
}

/* --- letting go --------------------------------------------------------- */

static void
account_forget(struct account *account, struct accounts *accounts)
{
	if (account->hot != NULL)
		account->hot->account = NULL;
	if (account->pool != NULL)
		account->pool->account = NULL;
	idmap_remove(&accounts->map, &account->id);
	hosts_put(accounts->hosts, &account->server, clock_mono_msecs());
	accounts->is_budget_stale = true;
	free(account);
}

/* Before anything else, for all of them (R-LEASE-5). */
static void
kill_children(struct accounts *accounts, const struct uuid *ids, size_t n)
{
	const struct account *account;
	size_t i;

	for (i = 0; i < n; i++) {
		account = account_find(accounts, &ids[i]);
		if (account != NULL && account->hot != NULL)
			child_kill(account->hot, "lease lost");
		if (account != NULL && account->pool != NULL)
			child_kill(account->pool, "lease lost");
	}
}

void
accounts_lost(struct accounts *accounts, const struct uuid *ids, size_t n,
    enum lease_end how)
{
	struct counters *counters = &accounts->m->counters;
	struct account *account;
	size_t i;

	kill_children(accounts, ids, n);
	if (n > LOG_EACH_MAX)
		log_warn(NULL, "%zu leases lost, children killed: %s", n,
		    lease_end_describe(how));
	for (i = 0; i < n; i++) {
		account = account_find(accounts, &ids[i]);
		if (account == NULL)
			continue;
		counters->leases_lost++;
		if (how == LEASE_FENCED)
			counters->fenced++;
		if (n <= LOG_EACH_MAX)
			log_warn(&account->log,
			    "lease lost, children killed: %s",
			    lease_end_describe(how));
		else
			log_debug(&account->log, "lease lost");
		account_forget(account, accounts);
	}
}

void
account_leave_step(struct account *account, struct master *m)
{
	struct uuid id = account->id;
	int64_t avoid = account->avoid_msecs;

	if (account->state != ACCOUNT_LEAVING || account->hot != NULL ||
	    account->pool != NULL)
		return;
	log_info(&account->log, "account released: %s", account->leave_why);
	account_forget(account, m->accounts);
	keeper_release(m->keeper, &id, avoid);
}

void
account_leave(struct account *account, struct master *m, const char *why,
    int64_t avoid_msecs)
{
	if (account->state == ACCOUNT_LEAVING)
		return;
	account->state = ACCOUNT_LEAVING;
	account->avoid_msecs = avoid_msecs;
	strlcpy(account->leave_why, why, sizeof(account->leave_why));
	if (account->hot != NULL)
		child_stop(account->hot, why);
	if (account->pool != NULL)
		child_stop(account->pool, why);
	account_leave_step(account, m);
}

struct account **
accounts_list(const struct accounts *accounts, size_t *n_r)
{
	struct account **list, *account;
	size_t at, n = 0;

	list = xcalloc(accounts->map.n + 1, sizeof(struct account *));
	for (at = 0; (account = idmap_next(&accounts->map, &at, NULL)) != NULL;)
		list[n++] = account;
	*n_r = n;
	return list;
}

void
accounts_leave_all(struct accounts *accounts, const char *why)
{
	struct account **list;
	size_t i, n;

	list = accounts_list(accounts, &n);
	for (i = 0; i < n; i++)
		account_leave(list[i], accounts->m, why, 0);
	free(list);
}

static int64_t
last_activity(const struct account *account)
{
	const struct tier_facts *facts = &account->facts;

	if (account->state == ACCOUNT_LEAVING) /* counts, and goes anyway */
		return INT64_MIN;
	if (account->session_until_mono > clock_mono_msecs())
		return INT64_MAX;
	return facts->last_mail_secs > facts->last_active_secs ?
	    facts->last_mail_secs : facts->last_active_secs;
}

static int
by_activity(const void *va, const void *vb)
{
	int64_t a = last_activity(*(struct account *const *)va);
	int64_t b = last_activity(*(struct account *const *)vb);

	return a < b ? -1 : a > b;
}

void
accounts_shed(struct accounts *accounts, size_t excess)
{
	struct master *m = accounts->m;
	struct account **list;
	size_t i, n;

	list = accounts_list(accounts, &n);
	qsort(list, n, sizeof(struct account *), by_activity);
	log_info(NULL, "rebalance: releasing %zu of %zu accounts", excess, n);
	for (i = 0; i < n && i < excess; i++)
		account_leave(list[i], m, "rebalance",
		    (m->conf->claim_interval + m->conf->claim_jitter) * 3000);
	free(list);
}

/* --- what is heard ------------------------------------------------------- */

/* Live it was before: new credentials or servers, or a refusal forgiven. */
static void
hear_still_live(struct account *account, struct master *m, const char *reason)
{
	if (account->state != ACCOUNT_OWNED)
		return;
	if (account->hot != NULL && reason[0] != '\0')
		child_stop(account->hot, reason);
	look_up(account, m);
}

void
accounts_state_changed(struct accounts *accounts, const struct uuid *id,
    const char *state, const char *reason)
{
	struct master *m = accounts->m;
	struct account *account = account_find(accounts, id);
	char why[64];

	if (strcmp(state, "live") == 0) {
		if (account != NULL)
			hear_still_live(account, m, reason);
		keeper_set_live(m->keeper, id, true);
		return;
	}
	keeper_set_live(m->keeper, id, false);
	if (strcmp(state, "deleted") == 0)
		hints_forget(m->redis, id);
	if (account == NULL)
		return;
	snprintf(why, sizeof(why), "account is %.20s %.30s", state, reason);
	account_leave(account, m, why, 0);
}

void
accounts_listing_begins(struct accounts *accounts)
{
	accounts->listing++;
	accounts->listing_since_mono = clock_mono_msecs();
}

void
accounts_listed(struct accounts *accounts, const struct uuid *ids, size_t n)
{
	struct account *account;
	size_t i;

	for (i = 0; i < n; i++)
		if ((account = account_find(accounts, &ids[i])) != NULL)
			account->listing = accounts->listing;
}

void
accounts_listing_ends(struct accounts *accounts)
{
	struct account *account;
	size_t at;

	for (at = 0; (account = idmap_next(&accounts->map, &at, NULL)) !=
	    NULL;)
		if (account->state == ACCOUNT_OWNED &&
		    account->listing != accounts->listing &&
		    account->since_mono < accounts->listing_since_mono)
			look_up(account, accounts->m);
}

void
account_unlisted(struct accounts *accounts, const struct uuid *id)
{
	struct account *account = account_find(accounts, id);

	if (account != NULL && account->state == ACCOUNT_OWNED)
		look_up(account, accounts->m);
}

/* --- the rest ----------------------------------------------------------- */

void
account_renewed(struct accounts *accounts, const struct uuid *id,
    int64_t deadline_boot_msecs)
{
	struct account *account = account_find(accounts, id);

	if (account == NULL)
		return;
	account->deadline_boot_msecs = deadline_boot_msecs;
	if (account->hot != NULL)
		child_move_deadline(account->hot, deadline_boot_msecs);
	if (account->pool != NULL)
		child_move_deadline(account->pool, deadline_boot_msecs);
}

void
accounts_database_back(struct accounts *accounts)
{
	int64_t now = clock_mono_msecs();
	struct account *account;
	size_t at;

	for (at = 0; (account = idmap_next(&accounts->map, &at, NULL)) !=
	    NULL;) {
		int64_t soon = now + 1 + arc4random_uniform(
		    (uint32_t)accounts->m->conf->claim_interval * 1000);

		if (account->last_error_kind != ERR_DATABASE ||
		    account->refusals > 0)
			continue;
		if (account->not_before_mono > soon)
			account->not_before_mono = soon;
		if (account->hot_not_before_mono > soon)
			account->hot_not_before_mono = soon;
	}
	dispatch_soon(accounts->m);
}

void
account_poll_now(struct account *account, struct master *m)
{
	account->schedule.full = clock_mono_msecs();
	account->is_wanted_full = account->pool != NULL;
	/* What the server has asked for is not ours to overrule. */
	if (account->last_error_kind != ERR_AUTH &&
	    account->last_error_kind != ERR_THROTTLED)
		account->not_before_mono = 0;
	if (account->hot != NULL)
		child_send(account->hot, MSG_WAKE, &(struct msg_empty){ 0 });
	dispatch_soon(m);
}

struct accounts *
accounts_new(struct master *m)
{
	struct accounts *accounts = xcalloc(1, sizeof(*accounts));

	accounts->m = m;
	accounts->hosts = hosts_new();
	accounts->evaluate = event_new(m->base, -1, 0, tiers_evaluate_all,
	    accounts);
	accounts->run = event_new(m->base, -1, 0, dispatch_run, m);
	event_in_msecs(accounts->evaluate, m->conf->tier_interval * 1000);
	return accounts;
}

void
accounts_free(struct accounts **accounts_p)
{
	struct accounts *accounts = *accounts_p;
	struct account *account;
	size_t at;

	if (accounts == NULL)
		return;
	*accounts_p = NULL;
	for (at = 0; (account = idmap_next(&accounts->map, &at, NULL)) != NULL;)
		free(account);
	idmap_release(&accounts->map);
	hosts_free(&accounts->hosts);
	event_free(accounts->run);
	event_free(accounts->evaluate);
	free(accounts);
}
