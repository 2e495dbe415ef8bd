/*
 * budgets.c - the budgets of this worker.
 *
 * Runs in: master.  Never blocks.
 *
 * Counters per host, account and resource are kept in one place: claim_take()
 * and claim_put_back() are the only functions that change them.
 */
#include "master/budgets.h"

#include "base/xmem.h"
#include "lease/idmap.h"
#include "master/policy.h"

#include <bsd/string.h>
#include <bsd/sys/queue.h>

#include <stdlib.h>

/* R-CONN-1: IDLE and one transient; jobs get the other two of four. */
#define ACCOUNT_CAP 2
/* More than any honest child needs; a bound for the others. */
#define CLAIMS_PER_CHILD 32
#define WAIT_MAX_MSECS 600000
/* What a refused child is told to wait. */
#define RETRY_MSECS 5000
/* After a no at the gate: other workers do not tell when they are done. */
#define GATE_MSECS 1000

struct budget_host {
	TAILQ_ENTRY(budget_host) entry;
	char name[MSG_HOST_SIZE];
	size_t used, idle;
	size_t n_claims; /* claims that point here; 0: free it */
};

struct budget_claim {
	TAILQ_ENTRY(budget_claim) entry;
	uint32_t generation;
	struct uuid account;
	size_t account_cap; /* 0: the usual number */
	struct msg_want msg;
	struct budget_host *host; /* RESOURCE_SOCKET */
	int64_t deadline;
	int64_t not_before; /* waiting: the gate said no */
	bool is_taken; /* in `granted`: counted */
	bool is_asked; /* ... but the gate has not answered yet */
};

TAILQ_HEAD(claim_list, budget_claim);

struct budgets {
	const struct conf *conf;
	size_t n_clerks;
	void (*answer)(void *arg, uint32_t generation,
	    const struct msg_grant *grant);
	void *arg;
	struct budgets_gate gate;
	struct claim_list waiting; /* in order of coming */
	struct claim_list granted; /* or about to be */
	TAILQ_HEAD(, budget_host) hosts;
	struct idmap accounts; /* connections, as a number */
	struct idmap logins; /* accounts where one is under way */
	size_t used[RESOURCE_COUNT];
	size_t n_waiting;
};

/* --- what there is ------------------------------------------------------ */

size_t
budgets_idle_cap(const struct conf *conf, const char *host)
{
	return policy_idle_share((size_t)conf_host_cap(conf, host));
}

size_t
budgets_account_in_use(const struct budgets *budgets,
    const struct uuid *account)
{
	return (size_t)(uintptr_t)idmap_get(&budgets->accounts, account);
}

static size_t
claim_account_cap(const struct budget_claim *claim)
{
	return claim->account_cap != 0 && claim->account_cap < ACCOUNT_CAP ?
	    claim->account_cap : ACCOUNT_CAP;
}

static bool
claim_fits(const struct budgets *budgets, const struct budget_claim *claim)
{
	const struct conf *conf = budgets->conf;
	const struct budget_host *host = claim->host;

	switch (claim->msg.resource) {
	case RESOURCE_SOCKET:
		if (host->used >= (size_t)conf_host_cap(conf, host->name))
			return false;
		return !claim->msg.is_idle ||
		    host->idle < budgets_idle_cap(conf, host->name);
	case RESOURCE_ACCOUNT:
		return uuid_is_null(&claim->account) ||
		    budgets_account_in_use(budgets, &claim->account) <
			claim_account_cap(claim);
	case RESOURCE_LOGIN:
		return uuid_is_null(&claim->account) ||
		    idmap_get(&budgets->logins, &claim->account) == NULL;
	case RESOURCE_PARSE:
		return budgets->used[RESOURCE_PARSE] <
		    (size_t)conf->parse_concurrency;
	case RESOURCE_DATABASE:
		return budgets->used[RESOURCE_DATABASE] + budgets->n_clerks <
		    (size_t)conf->db_conn_cap;
	default:
		return false;
	}
}

static void
budgets_count_connection(struct budgets *budgets, const struct uuid *account,
    int by)
{
	size_t n = budgets_account_in_use(budgets, account) + (size_t)by;

	if (n == 0)
		idmap_remove(&budgets->accounts, account);
	else
		idmap_put(&budgets->accounts, account, (void *)(uintptr_t)n);
}

static void
claim_count(struct budgets *budgets, struct budget_claim *claim, int by)
{
	budgets->used[claim->msg.resource] += (size_t)by;
	if (claim->msg.resource == RESOURCE_SOCKET) {
		claim->host->used += (size_t)by;
		if (claim->msg.is_idle)
			claim->host->idle += (size_t)by;
	} else if (uuid_is_null(&claim->account)) {
		return;
	} else if (claim->msg.resource == RESOURCE_ACCOUNT) {
		budgets_count_connection(budgets, &claim->account, by);
	} else if (claim->msg.resource == RESOURCE_LOGIN) {
		if (by > 0)
			idmap_put(&budgets->logins, &claim->account, budgets);
		else
			idmap_remove(&budgets->logins, &claim->account);
	}
}

static bool
claim_is_gated(const struct budgets *budgets, const struct budget_claim *claim)
{
	return budgets->gate.ask != NULL &&
	    claim->msg.resource == RESOURCE_ACCOUNT &&
	    !uuid_is_null(&claim->account);
}

static uint64_t
claim_tag(const struct budget_claim *claim)
{
	return (uint64_t)claim->generation << 32 | claim->msg.want_id;
}

static void
claim_take(struct budgets *budgets, struct budget_claim *claim)
{
	claim_count(budgets, claim, 1);
	claim->is_taken = true;
	TAILQ_INSERT_TAIL(&budgets->granted, claim, entry);
}

static void
claim_put_back(struct budgets *budgets, struct budget_claim *claim)
{
	claim_count(budgets, claim, -1);
	claim->is_taken = claim->is_asked = false;
	TAILQ_REMOVE(&budgets->granted, claim, entry);
	if (claim_is_gated(budgets, claim))
		budgets->gate.give_back(budgets->gate.arg, claim_tag(claim));
}

/* --- hosts -------------------------------------------------------------- */

static struct budget_host *
budget_host_find(const struct budgets *budgets, const char *name)
{
	struct budget_host *host;

	TAILQ_FOREACH(host, &budgets->hosts, entry)
		if (strcasecmp(host->name, name) == 0)
			return host;
	return NULL;
}

static struct budget_host *
budget_host_get(struct budgets *budgets, const char *name)
{
	struct budget_host *host = budget_host_find(budgets, name);

	if (host == NULL) {
		host = xcalloc(1, sizeof(*host));
		strlcpy(host->name, name, sizeof(host->name));
		TAILQ_INSERT_TAIL(&budgets->hosts, host, entry);
	}
	host->n_claims++;
	return host;
}

static void
claim_free(struct budgets *budgets, struct budget_claim *claim)
{
	if (claim->host != NULL && --claim->host->n_claims == 0) {
		TAILQ_REMOVE(&budgets->hosts, claim->host, entry);
		free(claim->host);
	}
	free(claim);
}

/* --- answers ------------------------------------------------------------ */

static void
claim_say_yes(struct budgets *budgets, const struct budget_claim *claim)
{
	struct msg_grant grant = { .want_id = claim->msg.want_id,
		.is_granted = 1 };

	budgets->answer(budgets->arg, claim->generation, &grant);
}

static void
claim_say_no(struct budgets *budgets, const struct budget_claim *claim)
{
	static const char *const names[RESOURCE_COUNT] = {
		[RESOURCE_SOCKET] = "connection to this host",
		[RESOURCE_ACCOUNT] = "connection of this account",
		[RESOURCE_LOGIN] = "turn to log in",
		[RESOURCE_PARSE] = "place to parse",
		[RESOURCE_DATABASE] = "PostgreSQL session",
	};
	struct msg_grant grant = { .want_id = claim->msg.want_id,
		.retry_msecs = RETRY_MSECS };

	if (claim->host != NULL)
		snprintf(grant.reason, sizeof(grant.reason),
		    "no free %s%s: %zu in use",
		    claim->msg.is_idle ? "idle " : "",
		    names[claim->msg.resource], claim->host->used);
	else
		snprintf(grant.reason, sizeof(grant.reason), "no free %s",
		    names[claim->msg.resource]);
	budgets->answer(budgets->arg, claim->generation, &grant);
}

static void
claim_grant(struct budgets *budgets, struct budget_claim *claim)
{
	claim_take(budgets, claim);
	if (claim_is_gated(budgets, claim)) {
		claim->is_asked = true;
		budgets->gate.ask(budgets->gate.arg, &claim->account,
		    claim->account_cap, claim_tag(claim));
	} else {
		claim_say_yes(budgets, claim);
	}
}

static void
claim_let_wait(struct budgets *budgets, struct budget_claim *claim)
{
	TAILQ_INSERT_TAIL(&budgets->waiting, claim, entry);
	budgets->n_waiting++;
}

static void
claim_refuse(struct budgets *budgets, struct budget_claim *claim)
{
	claim_say_no(budgets, claim);
	claim_free(budgets, claim);
}

/* Something was given back: whoever fits now, in order. */
static void
budgets_serve(struct budgets *budgets, int64_t now)
{
	struct budget_claim *claim, *next;

	TAILQ_FOREACH_SAFE(claim, &budgets->waiting, entry, next) {
		if (claim->not_before > now || !claim_fits(budgets, claim))
			continue;
		TAILQ_REMOVE(&budgets->waiting, claim, entry);
		budgets->n_waiting--;
		claim_grant(budgets, claim);
	}
}

int64_t
budgets_expire(struct budgets *budgets, int64_t now)
{
	struct budget_claim *claim, *next;
	int64_t first = -1, at;

	TAILQ_FOREACH_SAFE(claim, &budgets->waiting, entry, next) {
		if (claim->deadline > now)
			continue;
		TAILQ_REMOVE(&budgets->waiting, claim, entry);
		budgets->n_waiting--;
		claim_refuse(budgets, claim);
	}
	budgets_serve(budgets, now);
	TAILQ_FOREACH(claim, &budgets->waiting, entry) {
		at = claim->not_before > now &&
		    claim->not_before < claim->deadline ? claim->not_before :
		    claim->deadline;
		if (first == -1 || at < first)
			first = at;
	}
	return first;
}

void
budgets_answer_gate(struct budgets *budgets, uint64_t tag, bool is_granted,
    int64_t now)
{
	struct budget_claim *claim;

	TAILQ_FOREACH(claim, &budgets->granted, entry)
		if (claim->is_asked && claim_tag(claim) == tag)
			break;
	if (claim == NULL)
		return;
	claim->is_asked = false;
	if (is_granted) {
		claim_say_yes(budgets, claim);
		return;
	}
	claim_put_back(budgets, claim);
	claim->not_before = now + GATE_MSECS;
	if (claim->deadline > now)
		claim_let_wait(budgets, claim);
	else
		claim_refuse(budgets, claim);
}

/* --- asking ------------------------------------------------------------- */

static bool
budgets_is_sane(const struct budgets *budgets, uint32_t generation,
    uint32_t want_id)
{
	const struct claim_list *lists[2] = { &budgets->waiting,
		&budgets->granted };
	const struct budget_claim *claim;
	size_t i, n = 0;

	for (i = 0; i < 2; i++) {
		TAILQ_FOREACH(claim, lists[i], entry) {
			if (claim->generation != generation)
				continue;
			if (claim->msg.want_id == want_id ||
			    ++n >= CLAIMS_PER_CHILD)
				return false;
		}
	}
	return true;
}

int
budgets_acquire(struct budgets *budgets, uint32_t generation,
    const struct uuid *account, size_t account_cap,
    const struct msg_want *msg, int64_t now)
{
	int64_t wait = msg->wait_msecs;
	struct budget_claim *claim;

	if (!budgets_is_sane(budgets, generation, msg->want_id))
		return -1;
	claim = xcalloc(1, sizeof(*claim));
	claim->generation = generation;
	claim->account = *account;
	claim->account_cap = account_cap;
	claim->msg = *msg;
	if (msg->resource == RESOURCE_SOCKET)
		claim->host = budget_host_get(budgets, msg->host);
	if (wait > WAIT_MAX_MSECS)
		wait = WAIT_MAX_MSECS;
	claim->deadline = now + (wait > 0 ? wait : 0);
	if (claim_fits(budgets, claim))
		claim_grant(budgets, claim);
	else if (wait > 0)
		claim_let_wait(budgets, claim);
	else
		claim_refuse(budgets, claim);
	return 0;
}

static void
budgets_remove(struct budgets *budgets, struct claim_list *list,
    uint32_t generation,
    bool (*is_it)(const struct budget_claim *, const void *), const void *arg)
{
	struct budget_claim *claim, *next;

	TAILQ_FOREACH_SAFE(claim, list, entry, next) {
		if (claim->generation != generation || !is_it(claim, arg))
			continue;
		if (claim->is_taken) {
			claim_put_back(budgets, claim);
		} else {
			TAILQ_REMOVE(list, claim, entry);
			budgets->n_waiting--;
		}
		claim_free(budgets, claim);
	}
}

static bool
claim_has_id(const struct budget_claim *claim, const void *arg)
{
	const uint32_t *want_id = arg;

	return claim->msg.want_id == *want_id;
}

void
budgets_release(struct budgets *budgets, uint32_t generation,
    uint32_t want_id, int64_t now)
{
	budgets_remove(budgets, &budgets->waiting, generation, claim_has_id,
	    &want_id);
	budgets_remove(budgets, &budgets->granted, generation, claim_has_id,
	    &want_id);
	budgets_expire(budgets, now);
}

static bool
claim_is_any(const struct budget_claim *claim, const void *arg)
{
	(void)claim;
	(void)arg;
	return true;
}

void
budgets_release_child(struct budgets *budgets, uint32_t generation, int64_t now)
{
	budgets_remove(budgets, &budgets->waiting, generation, claim_is_any,
	    NULL);
	budgets_remove(budgets, &budgets->granted, generation, claim_is_any,
	    NULL);
	budgets_expire(budgets, now);
}

static bool
claim_is_of_work(const struct budget_claim *claim, const void *arg)
{
	(void)arg;
	return claim->msg.resource != RESOURCE_DATABASE;
}

void
budgets_release_work(struct budgets *budgets, uint32_t generation, int64_t now)
{
	budgets_remove(budgets, &budgets->waiting, generation, claim_is_any,
	    NULL);
	budgets_remove(budgets, &budgets->granted, generation, claim_is_of_work,
	    NULL);
	budgets_expire(budgets, now);
}

/* --- life --------------------------------------------------------------- */

struct budgets *
budgets_new(const struct conf *conf, size_t n_clerks,
    void (*answer)(void *, uint32_t, const struct msg_grant *), void *arg)
{
	struct budgets *budgets = xcalloc(1, sizeof(*budgets));

	budgets->conf = conf;
	budgets->n_clerks = n_clerks;
	budgets->answer = answer;
	budgets->arg = arg;
	TAILQ_INIT(&budgets->waiting);
	TAILQ_INIT(&budgets->granted);
	TAILQ_INIT(&budgets->hosts);
	return budgets;
}

void
budgets_set_gate(struct budgets *budgets, const struct budgets_gate *gate)
{
	budgets->gate = *gate;
}

void
budgets_free(struct budgets **budgets_p)
{
	struct budgets *budgets = *budgets_p;
	struct budget_claim *claim;

	if (budgets == NULL)
		return;
	*budgets_p = NULL;
	while ((claim = TAILQ_FIRST(&budgets->waiting)) != NULL) {
		TAILQ_REMOVE(&budgets->waiting, claim, entry);
		claim_free(budgets, claim);
	}
	while ((claim = TAILQ_FIRST(&budgets->granted)) != NULL) {
		TAILQ_REMOVE(&budgets->granted, claim, entry);
		claim_free(budgets, claim);
	}
	idmap_release(&budgets->accounts);
	idmap_release(&budgets->logins);
	free(budgets);
}

size_t
budgets_in_use(const struct budgets *budgets, enum resource resource)
{
	return budgets->used[resource];
}

size_t
budgets_waiting(const struct budgets *budgets)
{
	return budgets->n_waiting;
}

size_t
budgets_host_in_use(const struct budgets *budgets, const char *name)
{
	const struct budget_host *host = budget_host_find(budgets, name);

	return host != NULL ? host->used : 0;
}
