/*
 * grants.c - the budgets of this worker.
 *
 * Runs in: master.  Never blocks.
 *
 * Counters per host, account and resource are kept in one place: take() and
 * put_back() are the only functions that change them.
 */
#include "master/grants.h"

#include "base/xmem.h"
#include "lease/idmap.h"
#include "master/policy.h"

#include <bsd/string.h>
#include <bsd/sys/queue.h>

#include <stdlib.h>

/* R-CONN-1: IDLE and one transient; jobs get the other two of four. */
#define ACCOUNT_CAP 2
/* More than any honest child needs; a bound for the others. */
#define WANTS_PER_CHILD 32
#define WAIT_MAX_MSECS 600000
/* What a refused child is told to wait. */
#define RETRY_MSECS 5000
/* After a no at the gate: other workers do not tell when they are done. */
#define GATE_MSECS 1000

struct host {
	TAILQ_ENTRY(host) entry;
	char name[MSG_HOST_SIZE];
	size_t used, idle;
	size_t n_wants; /* wants that point here; 0: free it */
};

struct want {
	TAILQ_ENTRY(want) entry;
	uint32_t generation;
	struct uuid account;
	size_t account_cap; /* 0: the usual number */
	struct msg_want msg;
	struct host *host; /* RESOURCE_SOCKET */
	int64_t deadline;
	int64_t not_before; /* waiting: the gate said no */
	bool is_taken; /* in `granted`: counted */
	bool is_asked; /* ... but the gate has not answered yet */
};

TAILQ_HEAD(want_list, want);

struct grants {
	const struct conf *conf;
	void (*answer)(void *arg, uint32_t generation,
	    const struct msg_grant *grant);
	void *arg;
	struct grants_gate gate;
	struct want_list waiting; /* in order of coming */
	struct want_list granted; /* or about to be */
	TAILQ_HEAD(, host) hosts;
	struct idmap accounts; /* connections, as a number */
	struct idmap logins; /* accounts where one is under way */
	size_t used[RESOURCE_COUNT];
	size_t n_waiting;
};

/* --- what there is ------------------------------------------------------ */

size_t
grants_idle_cap(const struct conf *conf, const char *host)
{
	return policy_idle_share((size_t)conf_host_cap(conf, host));
}

size_t
grants_account_in_use(const struct grants *grants, const struct uuid *account)
{
	return (size_t)(uintptr_t)idmap_get(&grants->accounts, account);
}

/* Sessions that are theirs without asking: a jobs worker has one more, for
 * what takes its time. */
static size_t
clerks(const struct conf *conf)
{
	return conf->worker_role == ROLE_JOBS ? 2 : 1;
}

static size_t
account_cap(const struct want *want)
{
	return want->account_cap != 0 && want->account_cap < ACCOUNT_CAP ?
	    want->account_cap : ACCOUNT_CAP;
}

static bool
fits(const struct grants *grants, const struct want *want)
{
	const struct conf *conf = grants->conf;
	const struct host *host = want->host;

	switch (want->msg.resource) {
	case RESOURCE_SOCKET:
		if (host->used >= (size_t)conf_host_cap(conf, host->name))
			return false;
		return !want->msg.is_idle ||
		    host->idle < grants_idle_cap(conf, host->name);
	case RESOURCE_ACCOUNT:
		return uuid_is_null(&want->account) ||
		    grants_account_in_use(grants, &want->account) <
			account_cap(want);
	case RESOURCE_LOGIN:
		return uuid_is_null(&want->account) ||
		    idmap_get(&grants->logins, &want->account) == NULL;
	case RESOURCE_PARSE:
		return grants->used[RESOURCE_PARSE] <
		    (size_t)conf->parse_concurrency;
	case RESOURCE_DATABASE:
		return grants->used[RESOURCE_DATABASE] + clerks(conf) <
		    (size_t)conf->db_conn_cap;
	default:
		return false;
	}
}

static void
count_connection(struct grants *grants, const struct uuid *account, int by)
{
	size_t n = grants_account_in_use(grants, account) + (size_t)by;

	if (n == 0)
		idmap_remove(&grants->accounts, account);
	else
		idmap_put(&grants->accounts, account, (void *)(uintptr_t)n);
}

static void
count(struct grants *grants, struct want *want, int by)
{
	grants->used[want->msg.resource] += (size_t)by;
	if (want->msg.resource == RESOURCE_SOCKET) {
		want->host->used += (size_t)by;
		if (want->msg.is_idle)
			want->host->idle += (size_t)by;
	} else if (uuid_is_null(&want->account)) {
		return;
	} else if (want->msg.resource == RESOURCE_ACCOUNT) {
		count_connection(grants, &want->account, by);
	} else if (want->msg.resource == RESOURCE_LOGIN) {
		if (by > 0)
			idmap_put(&grants->logins, &want->account, grants);
		else
			idmap_remove(&grants->logins, &want->account);
	}
}

static bool
is_gated(const struct grants *grants, const struct want *want)
{
	return grants->gate.ask != NULL &&
	    want->msg.resource == RESOURCE_ACCOUNT &&
	    !uuid_is_null(&want->account);
}

static uint64_t
tag_of(const struct want *want)
{
	return (uint64_t)want->generation << 32 | want->msg.want_id;
}

static void
take(struct grants *grants, struct want *want)
{
	count(grants, want, 1);
	want->is_taken = true;
	TAILQ_INSERT_TAIL(&grants->granted, want, entry);
}

static void
put_back(struct grants *grants, struct want *want)
{
	count(grants, want, -1);
	want->is_taken = want->is_asked = false;
	TAILQ_REMOVE(&grants->granted, want, entry);
	if (is_gated(grants, want))
		grants->gate.give_back(grants->gate.arg, tag_of(want));
}

/* --- hosts -------------------------------------------------------------- */

static struct host *
host_find(const struct grants *grants, const char *name)
{
	struct host *host;

	TAILQ_FOREACH(host, &grants->hosts, entry)
		if (strcasecmp(host->name, name) == 0)
			return host;
	return NULL;
}

static struct host *
host_get(struct grants *grants, const char *name)
{
	struct host *host = host_find(grants, name);

	if (host == NULL) {
		host = xcalloc(1, sizeof(*host));
		strlcpy(host->name, name, sizeof(host->name));
		TAILQ_INSERT_TAIL(&grants->hosts, host, entry);
	}
	host->n_wants++;
	return host;
}

static void
want_free(struct grants *grants, struct want *want)
{
	if (want->host != NULL && --want->host->n_wants == 0) {
		TAILQ_REMOVE(&grants->hosts, want->host, entry);
		free(want->host);
	}
	free(want);
}

/* --- answers ------------------------------------------------------------ */

static void
say_yes(struct grants *grants, const struct want *want)
{
	struct msg_grant grant = { .want_id = want->msg.want_id,
		.is_granted = 1 };

	grants->answer(grants->arg, want->generation, &grant);
}

static void
say_no(struct grants *grants, const struct want *want)
{
	static const char *const names[RESOURCE_COUNT] = {
		[RESOURCE_SOCKET] = "connection to this host",
		[RESOURCE_ACCOUNT] = "connection of this account",
		[RESOURCE_LOGIN] = "turn to log in",
		[RESOURCE_PARSE] = "place to parse",
		[RESOURCE_DATABASE] = "PostgreSQL session",
	};
	struct msg_grant grant = { .want_id = want->msg.want_id,
		.retry_msecs = RETRY_MSECS };

	if (want->host != NULL)
		snprintf(grant.reason, sizeof(grant.reason),
		    "no free %s%s: %zu in use",
		    want->msg.is_idle ? "idle " : "",
		    names[want->msg.resource], want->host->used);
	else
		snprintf(grant.reason, sizeof(grant.reason), "no free %s",
		    names[want->msg.resource]);
	grants->answer(grants->arg, want->generation, &grant);
}

static void
grant(struct grants *grants, struct want *want)
{
	take(grants, want);
	if (is_gated(grants, want)) {
		want->is_asked = true;
		grants->gate.ask(grants->gate.arg, &want->account,
		    want->account_cap, tag_of(want));
	} else {
		say_yes(grants, want);
	}
}

static void
let_wait(struct grants *grants, struct want *want)
{
	TAILQ_INSERT_TAIL(&grants->waiting, want, entry);
	grants->n_waiting++;
}

static void
refuse(struct grants *grants, struct want *want)
{
	say_no(grants, want);
	want_free(grants, want);
}

/* Something was given back: whoever fits now, in order. */
static void
serve(struct grants *grants, int64_t now)
{
	struct want *want, *next;

	TAILQ_FOREACH_SAFE(want, &grants->waiting, entry, next) {
		if (want->not_before > now || !fits(grants, want))
			continue;
		TAILQ_REMOVE(&grants->waiting, want, entry);
		grants->n_waiting--;
		grant(grants, want);
	}
}

int64_t
grants_expire(struct grants *grants, int64_t now)
{
	struct want *want, *next;
	int64_t first = -1, at;

	TAILQ_FOREACH_SAFE(want, &grants->waiting, entry, next) {
		if (want->deadline > now)
			continue;
		TAILQ_REMOVE(&grants->waiting, want, entry);
		grants->n_waiting--;
		refuse(grants, want);
	}
	serve(grants, now);
	TAILQ_FOREACH(want, &grants->waiting, entry) {
		at = want->not_before > now &&
		    want->not_before < want->deadline ? want->not_before :
		    want->deadline;
		if (first == -1 || at < first)
			first = at;
	}
	return first;
}

void
grants_settle(struct grants *grants, uint64_t tag, bool is_granted,
    int64_t now)
{
	struct want *want;

	TAILQ_FOREACH(want, &grants->granted, entry)
		if (want->is_asked && tag_of(want) == tag)
			break;
	if (want == NULL)
		return;
	want->is_asked = false;
	if (is_granted) {
		say_yes(grants, want);
		return;
	}
	put_back(grants, want);
	want->not_before = now + GATE_MSECS;
	if (want->deadline > now)
		let_wait(grants, want);
	else
		refuse(grants, want);
}

/* --- asking ------------------------------------------------------------- */

static bool
is_sane(const struct grants *grants, uint32_t generation, uint32_t want_id)
{
	const struct want_list *lists[2] = { &grants->waiting,
		&grants->granted };
	const struct want *want;
	size_t i, n = 0;

	for (i = 0; i < 2; i++) {
		TAILQ_FOREACH(want, lists[i], entry) {
			if (want->generation != generation)
				continue;
			if (want->msg.want_id == want_id ||
			    ++n >= WANTS_PER_CHILD)
				return false;
		}
	}
	return true;
}

int
grants_want(struct grants *grants, uint32_t generation,
    const struct uuid *account, size_t account_cap,
    const struct msg_want *msg, int64_t now)
{
	int64_t wait = msg->wait_msecs;
	struct want *want;

	if (!is_sane(grants, generation, msg->want_id))
		return -1;
	want = xcalloc(1, sizeof(*want));
	want->generation = generation;
	want->account = *account;
	want->account_cap = account_cap;
	want->msg = *msg;
	if (msg->resource == RESOURCE_SOCKET)
		want->host = host_get(grants, msg->host);
	if (wait > WAIT_MAX_MSECS)
		wait = WAIT_MAX_MSECS;
	want->deadline = now + (wait > 0 ? wait : 0);
	if (fits(grants, want))
		grant(grants, want);
	else if (wait > 0)
		let_wait(grants, want);
	else
		refuse(grants, want);
	return 0;
}

static void
remove_from(struct grants *grants, struct want_list *list,
    uint32_t generation, bool (*is_it)(const struct want *, const void *),
    const void *arg)
{
	struct want *want, *next;

	TAILQ_FOREACH_SAFE(want, list, entry, next) {
		if (want->generation != generation || !is_it(want, arg))
			continue;
		if (want->is_taken) {
			put_back(grants, want);
		} else {
			TAILQ_REMOVE(list, want, entry);
			grants->n_waiting--;
		}
		want_free(grants, want);
	}
}

static bool
has_id(const struct want *want, const void *arg)
{
	const uint32_t *want_id = arg;

	return want->msg.want_id == *want_id;
}

void
grants_give_back(struct grants *grants, uint32_t generation,
    uint32_t want_id, int64_t now)
{
	remove_from(grants, &grants->waiting, generation, has_id, &want_id);
	remove_from(grants, &grants->granted, generation, has_id, &want_id);
	grants_expire(grants, now);
}

static bool
is_any(const struct want *want, const void *arg)
{
	(void)want;
	(void)arg;
	return true;
}

void
grants_drop(struct grants *grants, uint32_t generation, int64_t now)
{
	remove_from(grants, &grants->waiting, generation, is_any, NULL);
	remove_from(grants, &grants->granted, generation, is_any, NULL);
	grants_expire(grants, now);
}

static bool
is_of_account(const struct want *want, const void *arg)
{
	(void)arg;
	return want->msg.resource != RESOURCE_DATABASE;
}

void
grants_drop_account(struct grants *grants, uint32_t generation, int64_t now)
{
	remove_from(grants, &grants->waiting, generation, is_any, NULL);
	remove_from(grants, &grants->granted, generation, is_of_account,
	    NULL);
	grants_expire(grants, now);
}

/* --- life --------------------------------------------------------------- */

struct grants *
grants_new(const struct conf *conf,
    void (*answer)(void *, uint32_t, const struct msg_grant *), void *arg)
{
	struct grants *grants = xcalloc(1, sizeof(*grants));

	grants->conf = conf;
	grants->answer = answer;
	grants->arg = arg;
	TAILQ_INIT(&grants->waiting);
	TAILQ_INIT(&grants->granted);
	TAILQ_INIT(&grants->hosts);
	return grants;
}

void
grants_set_gate(struct grants *grants, const struct grants_gate *gate)
{
	grants->gate = *gate;
}

void
grants_free(struct grants **grants_p)
{
	struct grants *grants = *grants_p;
	struct want *want;

	if (grants == NULL)
		return;
	*grants_p = NULL;
	while ((want = TAILQ_FIRST(&grants->waiting)) != NULL) {
		TAILQ_REMOVE(&grants->waiting, want, entry);
		want_free(grants, want);
	}
	while ((want = TAILQ_FIRST(&grants->granted)) != NULL) {
		TAILQ_REMOVE(&grants->granted, want, entry);
		want_free(grants, want);
	}
	idmap_release(&grants->accounts);
	idmap_release(&grants->logins);
	free(grants);
}

size_t
grants_in_use(const struct grants *grants, enum resource resource)
{
	return grants->used[resource];
}

size_t
grants_waiting(const struct grants *grants)
{
	return grants->n_waiting;
}

size_t
grants_host_in_use(const struct grants *grants, const char *name)
{
	const struct host *host = host_find(grants, name);

	return host != NULL ? host->used : 0;
}
