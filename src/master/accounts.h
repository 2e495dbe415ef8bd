/*
 * accounts.h - the accounts this worker owns, and what it knows of each.
 *
 * Runs in: master of the sync role.  Never blocks.
 *
 *	won -> TAKING (clerk: raise the epoch, tell the facts) -> OWNED
 *	    -> LEAVING (children end) -> lease released, forgotten
 *
 * TAKING is tried again after a pause when PostgreSQL is there and this one
 * account's row is the trouble: to pass it on would only make the next worker
 * wait for it.
 *
 * A lost lease leads from any state straight to forgotten, children killed.
 */
#ifndef MASTER_ACCOUNTS_H
#define MASTER_ACCOUNTS_H

#include "lease/idmap.h"
#include "lease/leases.h"
#include "master/policy.h"
#include "master/state.h"
#include "proc/slots.h"

#include <stdint.h>

struct host;
struct hosts;

enum account_state { ACCOUNT_TAKING, ACCOUNT_OWNED, ACCOUNT_LEAVING };
const char *ownership_name(enum account_state state);

struct account {
	struct uuid id, user_id;
	struct log log;
	enum account_state state;
	int64_t epoch; /* the fencing token of this ownership */
	int64_t deadline_boot_msecs;
	int64_t since_mono; /* owned */
	uint64_t listing; /* the last reconcile that named it live */
	int64_t avoid_msecs; /* LEAVING: not claimed again for so long */
	char leave_why[64];
	char email[MSG_EMAIL_SIZE];
	char host[MSG_HOST_SIZE];
	int64_t conn_cap; /* of its server, by the quirks; 0: the usual number */

	/* tier */
	enum tier tier;
	const char *rule; /* what gave it */
	struct tier_facts facts;
	int64_t session_until_mono;
	int64_t active_until_mono; /* user.active is believed without a key */
	bool is_asked;	      /* TAKING: the clerk is at it */
	bool has_hints;	      /* Redis was asked since the claim */
	bool is_over_budget;  /* hot by rule, but the budget is spent */
	enum no_idle no_idle; /* hot, but polled often instead */
	struct host *server;  /* NULL until the facts have come */

	/* work */
	struct schedule schedule;
	struct child *hot, *pool;
	unsigned pool_scope; /* of the pass under way */
	bool is_wanted_near, is_wanted_full; /* since it began */

	/* failures */
	unsigned failures;     /* passes in a row */
	unsigned deaths;       /* in a row, each of something known */
	unsigned deaths_there; /* of them at the same step and place */
	struct slot_note last_death;
	unsigned hot_failures; /* hot children in a row */
	unsigned refusals;     /* logins in a row */
	struct logins logins;
	int64_t not_before_mono;     /* no provider call until then */
	int64_t narrow_until_mono;   /* one connection at a time */
	int64_t silent_until_mono;   /* IDLE is of no use */
	struct behind behind;	     /* what polls saw of INBOX */
	int64_t hot_not_before_mono; /* no hot child */
	enum err_kind last_error_kind;
	char last_error[MSG_TEXT_SIZE];
	int64_t last_error_secs, last_pass_secs;
	uint64_t passes;
};

struct accounts {
	struct master *m;
	struct idmap map;
	struct hosts *hosts;
	struct event *run;	/* something is due */
	bool is_wanted;		/* ... now: dispatch_soon */
	struct event *evaluate; /* tiers, each tier_interval */
	bool is_budget_stale;
	uint64_t listing; /* number of the reconcile under way */
	int64_t listing_since_mono;
};

struct accounts *accounts_new(struct master *m);
void accounts_free(struct accounts **accounts);
struct account *account_find(const struct accounts *accounts,
    const struct uuid *id);
size_t accounts_count(const struct accounts *accounts);
size_t accounts_of_tier(const struct accounts *accounts, enum tier tier);
/* Hot accounts that do not idle for this reason; NO_IDLE_COUNT: for any. */
size_t accounts_polled_instead(const struct accounts *accounts,
    enum no_idle why);
/* All of them, to be freed: for those who change the table meanwhile. */
struct account **accounts_list(const struct accounts *accounts, size_t *n_r);
/* State or tier has changed: they stand before each of its log lines. */
void account_set_log(struct account *account);

/* From the keeper. */
void account_won(struct accounts *accounts, const struct uuid *id,
    int64_t deadline_boot_msecs);
void account_renewed(struct accounts *accounts, const struct uuid *id,
    int64_t deadline_boot_msecs);
void accounts_lost(struct accounts *accounts, const struct uuid *ids,
    size_t n, enum lease_end how);
void accounts_shed(struct accounts *accounts, size_t n);

/* Asks the clerk to raise the epoch of a TAKING account. */
void account_take(struct account *account, struct master *m);

/* From the clerk. */
void account_facts(struct accounts *accounts, const struct msg_facts *facts);

/* Ends the children, then releases the lease. */
void account_leave(struct account *account, struct master *m, const char *why,
    int64_t avoid_msecs);
void accounts_leave_all(struct accounts *accounts, const char *why);
/* A child of a LEAVING account has ended: the last one lets go. */
void account_leave_step(struct account *account, struct master *m);

/* account.state_changed (R-LIFE-2) */
void accounts_state_changed(struct accounts *accounts, const struct uuid *id,
    const char *state, const char *reason);

/* Reconcile lists the live accounts: one that is ours and not among them has
 * left without our hearing of it (R-LIFE-3). */
void accounts_listing_begins(struct accounts *accounts);
void accounts_listed(struct accounts *accounts, const struct uuid *ids,
    size_t n);
void accounts_listing_ends(struct accounts *accounts);
/* It is not in sync:live: the clerk looks it up. */
void account_unlisted(struct accounts *accounts, const struct uuid *id);

/* PostgreSQL is: who waits because of it alone need not wait any longer. */
void accounts_database_back(struct accounts *accounts);

/* An operator wants a full poll now. */
void account_poll_now(struct account *account, struct master *m);

#endif
