/*
 * tiers.c - which tier each account of this worker is in, and who may idle.
 *
 * Runs in: master of the sync role.  Never blocks.
 *
 * policy.c says what follows from an account's own facts; here is what needs
 * all accounts at once: the hot budget of the worker (R-TIER-5) and the places
 * for IDLE at each host, of which the last fifth is kept for polls (R-CONN-2).
 */
#include "master/tiers.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "lease/hints.h"
#include "master/accounts.h"
#include "master/children.h"
#include "master/hosts.h"
#include "master/state.h"
#include "redis/redis.h"

#include <stdlib.h>

/* --- one account -------------------------------------------------------- */

static void
tiers_set(struct account *account, struct master *m, enum tier tier,
    const char *rule)
{
	account->rule = rule;
	if (account->tier == tier)
		return;
	log_info(&account->log, "tier %s: %s", tier_name(tier), rule);
	account->tier = tier;
	account_set_log(account);
	policy_adjust(m->conf, tier, account->hot != NULL, clock_mono_msecs(),
	    arc4random(), &account->schedule);
	hints_write_tier(m->redis, &account->id, tier_name(tier));
	accounts_budget_changed(m->accounts);
	accounts_look_soon(m->accounts);
}

void
tiers_evaluate(struct account *account, struct master *m)
{
	bool had_session = account->facts.has_session;
	const char *rule;
	enum tier tier;

	if (account->state != OWNERSHIP_OWNED)
		return;
	account->facts.has_session =
	    account->session_until_mono > clock_mono_msecs();
	/* Also a session that no event told of: its key did (R-TIER-4). */
	if (account->facts.has_session)
		account->facts.last_active_secs = clock_wall_secs();
	/* Hot by its mail all the same, it now counts against the budget. */
	if (account->facts.has_session != had_session) {
		accounts_budget_changed(m->accounts);
		accounts_look_soon(m->accounts);
	}
	tier = policy_tier(m->conf, &account->facts, clock_wall_secs(), &rule);
	if (tier == TIER_HOT && account->is_over_budget) {
		tier = TIER_WARM;
		rule = "hot, but hot_budget_per_worker is spent";
	}
	tiers_set(account, m, tier, rule);
}

static void
tiers_on_hints(void *arg, const struct uuid *id, const struct hints *hints)
{
	struct master *m = arg;
	struct account *account = account_find(m->accounts, id);
	enum tier tier;

	if (account == NULL || account->state != OWNERSHIP_OWNED)
		return;
	/* Just claimed: what the owner before us thought (R-TIER-1).  Others
	 * may have the places by now: it is a change like any other. */
	if (!account->has_hints && tier_parse(hints->tier, &tier) == 0)
		tiers_set(account, m, tier, "inherited");
	account->has_hints = true;
	account->facts.is_pinned = tier_parse(hints->pin,
	    &account->facts.pin) == 0;
	/* While the key exists (R-TIER-3): a session may end early. */
	account->session_until_mono = hints->session_msecs > 0 ?
	    clock_mono_msecs() + hints->session_msecs :
	    account->active_until_mono;
	tiers_evaluate(account, m);
}

void
tiers_ask(struct account *account, struct master *m)
{
	hints_ask(m->redis, &account->id, &account->user_id, 1, tiers_on_hints,
	    m);
}

void
tiers_pin(struct account *account, struct master *m, bool is_pinned,
    enum tier pin)
{
	account->facts.is_pinned = is_pinned;
	account->facts.pin = pin;
	hints_write_pin(m->redis, &account->id, is_pinned ? tier_name(pin) :
	    "");
	account->is_over_budget = false;
	tiers_evaluate(account, m);
}

void
tiers_on_user_active(struct master *m, const struct uuid *user_id)
{
	int64_t now = clock_mono_msecs();
	struct account *account;
	size_t at;

	for (at = 0; (account = accounts_next(m->accounts, &at)) != NULL;) {
		if (!uuid_is_equal(&account->user_id, user_id))
			continue;
		account->facts.last_active_secs = clock_wall_secs();
		/* Until the key has been read, believe the event. */
		account->active_until_mono = now +
		    m->conf->tier_interval * 1000;
		if (account->session_until_mono < account->active_until_mono)
			account->session_until_mono =
			    account->active_until_mono;
		account->is_over_budget = false;
		accounts_budget_changed(m->accounts);
		tiers_evaluate(account, m);
		tiers_ask(account, m);
	}
}

/* --- all of them -------------------------------------------------------- */

/* Sessions are asked for first; the answers evaluate. */
void
tiers_evaluate_all(struct master *m)
{
	struct uuid *ids, *users;
	struct account **list;
	size_t i, n;

	list = accounts_list(m->accounts, &n);
	ids = xcalloc(n + 1, sizeof(*ids));
	users = xcalloc(n + 1, sizeof(*users));
	for (i = 0; i < n; i++) {
		ids[i] = list[i]->id;
		users[i] = list[i]->user_id;
	}
	/* Redis is away: sessions end by their own time. */
	if (redis_is_up(m->redis))
		hints_ask(m->redis, ids, users, n, tiers_on_hints, m);
	else
		for (i = 0; i < n; i++)
			tiers_evaluate(list[i], m);
	accounts_budget_changed(m->accounts);
	accounts_look_soon(m->accounts);
	free(ids);
	free(users);
	free(list);
}

static void
tiers_add_candidate(struct hot_candidate *candidate, size_t index,
    const struct account *account)
{
	const struct tier_facts *facts = &account->facts;

	*candidate = (struct hot_candidate){
		.index = index,
		.last_activity_secs =
		    facts->last_mail_secs > facts->last_active_secs ?
		    facts->last_mail_secs : facts->last_active_secs,
		.is_exempt = facts->has_session || facts->is_pinned,
		.has_place = account->hot != NULL,
	};
}

/* The hot budget: who would be hot, and how many may. */
static void
tiers_share_budget(struct master *m, struct account **list, size_t n)
{
	struct hot_candidate *candidates = xcalloc(n + 1,
	    sizeof(*candidates));
	struct account *account;
	size_t i, n_hot = 0, within;
	const char *rule;

	for (i = 0; i < n; i++)
		if (list[i]->state == OWNERSHIP_OWNED &&
		    policy_tier(m->conf, &list[i]->facts, clock_wall_secs(),
			&rule) == TIER_HOT)
			tiers_add_candidate(&candidates[n_hot++], i, list[i]);
	within = policy_budget(candidates, n_hot,
	    (size_t)m->conf->hot_budget_per_worker);
	for (i = 0; i < n_hot; i++) {
		account = list[candidates[i].index];
		if (account->is_over_budget == (i >= within))
			continue;
		account->is_over_budget = i >= within;
		tiers_evaluate(account, m);
	}
	free(candidates);
}

static void
tiers_set_no_idle(struct account *account, struct master *m, enum no_idle why)
{
	if (account->no_idle == why)
		return;
	account->no_idle = why;
	if (why != IDLE_ALLOWED)
		log_info(&account->log, "polled often instead of IDLE: %s "
		    "host=%s", no_idle_reason(why), account->host);
	policy_adjust(m->conf, account->tier, why == IDLE_ALLOWED,
	    clock_mono_msecs(), arc4random(), &account->schedule);
}

/* Reasons of the account itself. */
static enum no_idle
tiers_own_reason(const struct account *account, int64_t now)
{
	/* With a single connection IDLE would be in the way of all else. */
	if (account->conn_cap == 1 || account->single_until_mono > now)
		return NO_IDLE_ACCOUNT_LIMIT;
	if (account->idle_stale_until_mono > now)
		return NO_IDLE_SILENT;
	return IDLE_ALLOWED;
}

static int
tiers_by_host(const void *va, const void *vb)
{
	const struct account *a = *(struct account *const *)va;
	const struct account *b = *(struct account *const *)vb;

	return a->server < b->server ? -1 : a->server > b->server;
}

/* The hot accounts of one host. */
static void
tiers_share_places(struct master *m, struct account **list, size_t n,
    int64_t now)
{
	struct hot_candidate *candidates = xcalloc(n, sizeof(*candidates));
	size_t cap = host_cap(list[0]->server, m->conf, now);
	bool is_throttled = cap < (size_t)conf_host_cap(m->conf, list[0]->host);
	size_t i, n_free = 0, within;
	enum no_idle why;

	for (i = 0; i < n; i++) {
		why = tiers_own_reason(list[i], now);
		if (why != IDLE_ALLOWED)
			tiers_set_no_idle(list[i], m, why);
		else
			tiers_add_candidate(&candidates[n_free++], i, list[i]);
	}
	within = policy_places(candidates, n_free, policy_idle_share(cap));
	for (i = 0; i < n_free; i++)
		tiers_set_no_idle(list[candidates[i].index], m, i < within ?
		    IDLE_ALLOWED : is_throttled ? NO_IDLE_HOST_LIMIT :
		    NO_IDLE_HOST_FULL);
	free(candidates);
}

void
tiers_share_out(struct master *m)
{
	int64_t now = clock_mono_msecs();
	struct account **list;
	size_t i, from, n, n_hot = 0;

	list = accounts_list(m->accounts, &n);
	tiers_share_budget(m, list, n);
	for (i = 0; i < n; i++) {
		if (list[i]->state == OWNERSHIP_OWNED &&
		    list[i]->tier == TIER_HOT)
			list[n_hot++] = list[i];
		else
			list[i]->no_idle = IDLE_ALLOWED;
	}
	qsort(list, n_hot, sizeof(struct account *), tiers_by_host);
	for (from = 0; from < n_hot; from = i) {
		for (i = from + 1; i < n_hot &&
		    list[i]->server == list[from]->server; i++)
			;
		tiers_share_places(m, list + from, i - from, now);
	}
	accounts_budget_is_shared(m->accounts); /* by our own changes, too */
	free(list);
}
