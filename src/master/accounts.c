/*
 * accounts.c - the accounts this worker owns: taking over, tiers, letting go.
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
#include "lease/loop.h"
#include "lease/redis.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/dispatch.h"

#include <bsd/string.h>

#include <stdlib.h>

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

static void
set_log(struct account *account)
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
	log_warn(&account->log, "not taken over: %s",
	    outcome != ERR_NONE ? text : "the clerk told no facts");
	account_leave(account, m, "not taken over",
	    m->conf->claim_interval * 1000);
}

void
account_won(struct accounts *accounts, const struct uuid *id,
    int64_t deadline_boot_msecs)
{
	struct account *account = xcalloc(1, sizeof(*account));
	struct msg_take_over question = { .account_id = *id };
	struct master *m = accounts->m;

	account->id = *id;
	account->state = ACCOUNT_TAKING;
	account->deadline_boot_msecs = deadline_boot_msecs;
	account->since_mono = clock_mono_msecs();
	account->tier = TIER_WARM;
	account->rule = "just claimed";
	set_log(account);
	if (idmap_put(&accounts->map, id, account) != NULL)
		die_bug("account won twice");
	strlcpy(question.owner, m->worker_id, sizeof(question.owner));
	clerk_ask(m->clerk, MSG_TAKE_OVER, &question, sizeof(question), id,
	    on_taken);
}

static void
on_hints(void *arg, const struct uuid *id, const struct hints *hints)
{
	struct master *m = arg;
	struct account *account = account_find(m->accounts, id);
	bool is_first;

	if (account == NULL || account->state != ACCOUNT_OWNED)
		return;
	is_first = strcmp(account->rule, "just claimed") == 0;
	if (is_first && tier_parse(hints->tier, &account->tier) == 0)
		account->rule = "inherited";
	account->facts.is_pinned = tier_parse(hints->pin,
	    &account->facts.pin) == 0;
	if (hints->session_msecs > 0)
		account->session_until_mono = clock_mono_msecs() +
		    hints->session_msecs;
	else if (account->session_until_mono < clock_mono_msecs())
		account->session_until_mono = 0;
	account_evaluate(account, m);
}

static void
take_facts(struct account *account, const struct msg_facts *facts)
{
	int64_t wait;

	account->user_id = facts->user_id;
	account->facts.last_mail_secs = facts->last_mail_secs;
	if (facts->last_active_secs > account->facts.last_active_secs)
		account->facts.last_active_secs = facts->last_active_secs;
	text_clean_line(account->email, sizeof(account->email), facts->email,
	    strlen(facts->email));
	text_clean_line(account->host, sizeof(account->host), facts->imap_host,
	    strlen(facts->imap_host));
	wait = (facts->next_try_secs - clock_wall_secs()) * 1000;
	/* An earlier owner was told to wait; not longer than we would. */
	if (wait > 0 && wait <= 86400 * 1000)
		account->not_before_mono = clock_mono_msecs() + wait;
}

void
account_facts(struct accounts *accounts, const struct msg_facts *facts)
{
	struct account *account = account_find(accounts, &facts->account_id);
	struct master *m = accounts->m;

	if (account == NULL || account->state == ACCOUNT_LEAVING)
		return; /* lost meanwhile */
	if (!facts->is_found || !facts->is_live) {
		keeper_set_live(m->keeper, &account->id, false);
		account_leave(account, m,
		    facts->is_found ? "not live" : "no such account", 0);
		return;
	}
	take_facts(account, facts);
	if (account->state == ACCOUNT_OWNED) {
		/* Asked twice: the children of the first answer are fenced. */
		if (facts->epoch != account->epoch && account->hot != NULL)
			child_stop(account->hot, "new epoch");
		account->epoch = facts->epoch;
		return;
	}
	account->epoch = facts->epoch;
	account->state = ACCOUNT_OWNED;
	set_log(account);
	policy_start(m->conf, account->tier, clock_mono_msecs(), arc4random(),
	    &account->schedule);
	log_info(&account->log, "account taken over epoch=%lld email=%s",
	    (long long)account->epoch, account->email);
	hints_ask(m->redis, &account->id, &account->user_id, 1, on_hints, m);
	dispatch_soon(m);
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
	accounts->is_budget_stale = true;
	free(account);
}

void
account_lost(struct accounts *accounts, const struct uuid *id,
    enum lease_end how)
{
	struct account *account = account_find(accounts, id);

	if (account == NULL)
		return;
	/* Before anything else (R-LEASE-5). */
	if (account->hot != NULL)
		child_kill(account->hot, "lease lost");
	if (account->pool != NULL)
		child_kill(account->pool, "lease lost");
	accounts->m->counters.leases_lost++;
	if (how == LEASE_FENCED)
		accounts->m->counters.fenced++;
	log_warn(&account->log, "lease lost, children killed: %s",
	    how == LEASE_FENCED ? "another worker has it (fenced)" :
	    "not renewed in time");
	account_forget(account, accounts);
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

/* Leaving may free at once, so the table is not walked meanwhile. */
static struct account **
list_accounts(const struct accounts *accounts, size_t *n_r)
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

	list = list_accounts(accounts, &n);
	for (i = 0; i < n; i++)
		account_leave(list[i], accounts->m, why, 0);
	free(list);
}

static int64_t
last_activity(const struct account *account)
{
	const struct tier_facts *facts = &account->facts;

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

	list = list_accounts(accounts, &n);
	qsort(list, n, sizeof(struct account *), by_activity);
	log_info(NULL, "rebalance: releasing %zu of %zu accounts", excess, n);
	for (i = 0; i < n && i < excess; i++)
		account_leave(list[i], m, "rebalance",
		    (m->conf->claim_interval + m->conf->claim_jitter) * 3000);
	free(list);
}

/* --- tiers -------------------------------------------------------------- */

static void
set_tier(struct account *account, struct master *m, enum tier tier,
    const char *rule)
{
	account->rule = rule;
	if (account->tier == tier)
		return;
	log_info(&account->log, "tier %s: %s", tier_name(tier), rule);
	account->tier = tier;
	account->has_no_idle = false;
	set_log(account);
	policy_adjust(m->conf, tier, account->hot != NULL, clock_mono_msecs(),
	    arc4random(), &account->schedule);
	hints_write_tier(m->redis, &account->id, tier_name(tier));
	m->accounts->is_budget_stale = true;
	dispatch_soon(m);
}

void
account_evaluate(struct account *account, struct master *m)
{
	const char *rule;
	enum tier tier;

	if (account->state != ACCOUNT_OWNED)
		return;
	account->facts.has_session =
	    account->session_until_mono > clock_mono_msecs();
	tier = policy_tier(m->conf, &account->facts, clock_wall_secs(), &rule);
	if (tier == TIER_HOT && account->is_over_budget) {
		tier = TIER_WARM;
		rule = "hot, but hot_budget_per_worker is spent";
	}
	set_tier(account, m, tier, rule);
}

void
account_pin(struct account *account, struct master *m, bool is_pinned,
    enum tier pin)
{
	account->facts.is_pinned = is_pinned;
	account->facts.pin = pin;
	hints_write_pin(m->redis, &account->id, is_pinned ? tier_name(pin) :
	    "");
	account->is_over_budget = false;
	account_evaluate(account, m);
}

void
accounts_user_active(struct accounts *accounts, const struct uuid *user_id)
{
	struct master *m = accounts->m;
	int64_t now = clock_mono_msecs();
	struct account *account;
	size_t at;

	for (at = 0; (account = idmap_next(&accounts->map, &at, NULL)) !=
	    NULL;) {
		if (!uuid_is_equal(&account->user_id, user_id))
			continue;
		account->facts.last_active_secs = clock_wall_secs();
		/* Until the key has been read, believe the event. */
		if (account->session_until_mono < now +
		    m->conf->tier_interval * 1000)
			account->session_until_mono = now +
			    m->conf->tier_interval * 1000;
		account->is_over_budget = false;
		account_evaluate(account, m);
		hints_ask(m->redis, &account->id, user_id, 1, on_hints, m);
	}
}

void
accounts_state_changed(struct accounts *accounts, const struct uuid *id,
    const char *state, const char *reason)
{
	struct master *m = accounts->m;
	struct account *account = account_find(accounts, id);
	char why[64];

	if (strcmp(state, "live") == 0) {
		keeper_set_live(m->keeper, id, true);
		return;
	}
	keeper_set_live(m->keeper, id, false);
	if (account == NULL)
		return;
	snprintf(why, sizeof(why), "account is %.20s %.30s", state, reason);
	account_leave(account, m, why, 0);
}

/* Sessions are asked for first; the answers evaluate. */
static void
on_evaluate(evutil_socket_t fd, short what, void *arg)
{
	struct accounts *accounts = arg;
	struct master *m = accounts->m;
	struct uuid *ids, *users;
	struct account **list;
	size_t i, n;

	(void)fd;
	(void)what;
	event_in_msecs(accounts->evaluate, m->conf->tier_interval * 1000);
	list = list_accounts(accounts, &n);
	ids = xcalloc(n + 1, sizeof(*ids));
	users = xcalloc(n + 1, sizeof(*users));
	for (i = 0; i < n; i++) {
		ids[i] = list[i]->id;
		users[i] = list[i]->user_id;
	}
	/* Redis is away: sessions end by their own time. */
	if (redis_is_up(m->redis))
		hints_ask(m->redis, ids, users, n, on_hints, m);
	else
		for (i = 0; i < n; i++)
			account_evaluate(list[i], m);
	accounts->is_budget_stale = true;
	free(ids);
	free(users);
	free(list);
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
		slot_set_deadline(account->hot->slot, deadline_boot_msecs);
	if (account->pool != NULL)
		slot_set_deadline(account->pool->slot, deadline_boot_msecs);
}

void
account_poll_now(struct account *account, struct master *m)
{
	account->schedule.full = clock_mono_msecs();
	if (account->refusals == 0)
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
	accounts->evaluate = event_new(m->base, -1, 0, on_evaluate, accounts);
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
	event_free(accounts->run);
	event_free(accounts->evaluate);
	free(accounts);
}
