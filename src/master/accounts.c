/*
 * accounts.c - the table of the accounts this worker owns.
 *
 * Runs in: master of the sync role.  Never blocks.
 *
 * It calls none of those who work with it: what they want to be called for,
 * they have said in accounts_params.
 */
#include "master/accounts.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/xmem.h"
#include "lease/idmap.h"
#include "master/children.h"
#include "master/hosts.h"
#include "master/state.h"
#include "redis/loop.h"

#include <stdlib.h>
#include <strings.h>

struct accounts {
	struct accounts_params params;
	struct idmap map;
	struct hosts *hosts;
	struct event *due;	/* on_due */
	bool is_wanted;		/* ... in this turn of the loop */
	struct event *evaluate; /* on_evaluate */
	bool is_budget_stale;
	uint64_t listing; /* number of the reconcile under way */
	int64_t listing_since_mono;
};

const char *
ownership_state_name(enum ownership_state state)
{
	static const char *const names[] = {
		[OWNERSHIP_TAKING] = "taking over",
		[OWNERSHIP_OWNED] = "owned",
		[OWNERSHIP_LEAVING] = "leaving",
	};

	return names[state];
}

/* --- who is there --------------------------------------------------------- */

struct account *
accounts_add(struct accounts *accounts, const struct uuid *id,
    int64_t deadline_boot_msecs)
{
	struct account *account = xcalloc(1, sizeof(*account));

	account->id = *id;
	account->state = OWNERSHIP_TAKING;
	account->deadline_boot_msecs = deadline_boot_msecs;
	account->since_mono = clock_mono_msecs();
	account->tier = TIER_WARM;
	account->rule = "just claimed";
	account_set_log(account);
	if (idmap_put(&accounts->map, id, account) != NULL)
		die_bug("account won twice");
	return account;
}

void
accounts_renew(struct accounts *accounts, const struct uuid *id,
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
accounts_forget(struct accounts *accounts, struct account *account)
{
	if (account->hot != NULL)
		account->hot->account = NULL;
	if (account->pool != NULL)
		account->pool->account = NULL;
	idmap_remove(&accounts->map, &account->id);
	hosts_release(accounts->hosts, &account->server, clock_mono_msecs());
	accounts->is_budget_stale = true;
	free(account);
}

struct account *
account_find(const struct accounts *accounts, const struct uuid *id)
{
	return idmap_get(&accounts->map, id);
}

struct account *
accounts_next(const struct accounts *accounts, size_t *at)
{
	return idmap_next(&accounts->map, at, NULL);
}

struct account *
account_find_named(const struct accounts *accounts, const char *name)
{
	struct account *account;
	struct uuid id;
	size_t at;

	if (uuid_parse(name, &id) == 0)
		return account_find(accounts, &id);
	for (at = 0; (account = accounts_next(accounts, &at)) != NULL;)
		if (strcasecmp(account->email, name) == 0)
			break;
	return account;
}

struct account **
accounts_list(const struct accounts *accounts, size_t *n_r)
{
	struct account **list, *account;
	size_t at, n = 0;

	list = xcalloc(accounts->map.n + 1, sizeof(struct account *));
	for (at = 0; (account = accounts_next(accounts, &at)) != NULL;)
		list[n++] = account;
	*n_r = n;
	return list;
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

	for (at = 0; (account = accounts_next(accounts, &at)) != NULL;)
		if (account->state == OWNERSHIP_OWNED && account->tier == tier)
			n++;
	return n;
}

size_t
accounts_polled_instead(const struct accounts *accounts, enum no_idle why)
{
	struct account *account;
	size_t at, n = 0;

	for (at = 0; (account = accounts_next(accounts, &at)) != NULL;)
		if (account->state == OWNERSHIP_OWNED &&
		    account->tier == TIER_HOT &&
		    account->no_idle != IDLE_ALLOWED &&
		    (why == NO_IDLE_COUNT || account->no_idle == why))
			n++;
	return n;
}

/* --- one of them ---------------------------------------------------------- */

void
account_set_log(struct account *account)
{
	char text[UUID_TEXT_SIZE];

	uuid_format(&account->id, text);
	if (account->state == OWNERSHIP_OWNED)
		log_init(&account->log, LOG_CORE, "account_id=%s tier=%s", text,
		    tier_name(account->tier));
	else
		log_init(&account->log, LOG_CORE, "account_id=%s", text);
}

void
account_set_host(struct account *account, struct accounts *accounts,
    const char *name)
{
	int64_t now = clock_mono_msecs();

	if (account->server != NULL && strcmp(account->host, name) == 0)
		return;
	hosts_release(accounts->hosts, &account->server, now);
	text_clean_line(account->host, sizeof(account->host), name,
	    strlen(name));
	account->server = hosts_acquire(accounts->hosts, account->host, now);
	accounts->is_budget_stale = true;
}

void
account_saw_mail(struct account *account, struct accounts *accounts,
    int64_t mail_secs)
{
	if (mail_secs <= account->facts.last_mail_secs)
		return;
	account->facts.last_mail_secs = mail_secs;
	accounts->is_budget_stale = true;
}

bool
account_is_idling(const struct account *account)
{
	return account->hot != NULL && account->hot->idling_since_mono != 0 &&
	    account->hot->state == CHILD_WORKING;
}

void
account_drop_child(struct account *account, struct child *child)
{
	child->account = NULL;
	if (account->hot == child)
		account->hot = NULL;
	if (account->pool == child)
		account->pool = NULL;
}

void
account_poll_now(struct account *account, struct accounts *accounts)
{
	account->schedule.full = clock_mono_msecs();
	account->is_wanted_full = account->pool != NULL;
	health_hurry(&account->health);
	if (account->hot != NULL)
		child_send(account->hot, MSG_WAKE, &(struct msg_empty){ 0 });
	accounts_look_soon(accounts);
}

void
account_poll_near(struct account *account, struct accounts *accounts)
{
	policy_again(&account->schedule, clock_mono_msecs());
	account->is_wanted_near = account->pool != NULL;
	accounts_look_soon(accounts);
}

void
account_poll_again(struct account *account)
{
	int64_t now = clock_mono_msecs();

	if (account->is_wanted_near)
		policy_again(&account->schedule, now);
	if (account->is_wanted_full)
		account->schedule.full = now;
	account->is_wanted_near = account->is_wanted_full = false;
}

/* --- what is to be looked at ---------------------------------------------- */

static void
accounts_on_due(evutil_socket_t fd, short what, void *arg)
{
	struct accounts *accounts = arg;

	(void)fd;
	(void)what;
	if (!accounts->params.m->is_stopping)
		accounts->params.on_due(accounts->params.m);
}

void
accounts_look_soon(struct accounts *accounts)
{
	if (accounts->params.m->is_stopping)
		return;
	accounts->is_wanted = true;
	event_in_msecs(accounts->due, 0);
}

void
accounts_look_begins(struct accounts *accounts)
{
	accounts->is_wanted = false;
}

/* What was asked for in this turn comes before what was found. */
void
accounts_look_ends(struct accounts *accounts, int64_t in_msecs)
{
	event_in_msecs(accounts->due, accounts->is_wanted ? 0 : in_msecs);
}

static void
accounts_on_evaluate(evutil_socket_t fd, short what, void *arg)
{
	struct accounts *accounts = arg;
	struct master *m = accounts->params.m;

	(void)fd;
	(void)what;
	event_in_msecs(accounts->evaluate, m->conf->tier_interval * 1000);
	accounts->params.on_evaluate(m);
}

void
accounts_budget_changed(struct accounts *accounts)
{
	accounts->is_budget_stale = true;
}

bool
accounts_budget_is_stale(const struct accounts *accounts)
{
	return accounts->is_budget_stale;
}

void
accounts_budget_is_shared(struct accounts *accounts)
{
	accounts->is_budget_stale = false;
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

/* Not when it came after the listing had begun. */
bool
account_is_unlisted(const struct account *account,
    const struct accounts *accounts)
{
	return account->state == OWNERSHIP_OWNED &&
	    account->listing != accounts->listing &&
	    account->since_mono < accounts->listing_since_mono;
}

/* --- life ----------------------------------------------------------------- */

struct accounts *
accounts_new(const struct accounts_params *params)
{
	struct accounts *accounts = xcalloc(1, sizeof(*accounts));
	struct master *m = params->m;

	accounts->params = *params;
	accounts->hosts = hosts_new();
	accounts->evaluate = event_new(m->base, -1, 0, accounts_on_evaluate,
	    accounts);
	accounts->due = event_new(m->base, -1, 0, accounts_on_due, accounts);
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
	for (at = 0; (account = accounts_next(accounts, &at)) != NULL;)
		free(account);
	idmap_release(&accounts->map);
	hosts_free(&accounts->hosts);
	event_free(accounts->due);
	event_free(accounts->evaluate);
	free(accounts);
}
