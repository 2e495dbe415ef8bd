/*
 * accounts.h - the table of the accounts this worker owns.
 *
 * Runs in: master of the sync role.  Never blocks.
 *
 *	won -> TAKING (clerk: raise the epoch, tell the facts) -> OWNED
 *	    -> LEAVING (children end) -> lease released, forgotten
 *
 * takeover.c leads to OWNED, release.c from there; a lost lease leads from any
 * state straight to forgotten, children killed.  Here is the table itself: who
 * is in it, what each may be asked, and what it wants looked at next.
 */
#ifndef MASTER_ACCOUNTS_H
#define MASTER_ACCOUNTS_H

#include "base/log.h"
#include "master/health.h"
#include "master/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct accounts;
struct child;
struct host;
struct master;

enum ownership_state { OWNERSHIP_TAKING, OWNERSHIP_OWNED, OWNERSHIP_LEAVING };
/* "taking over", ... */
const char *ownership_state_name(enum ownership_state state);

/* Everybody may read all of it; each part is written by the file it names. */
struct account {
	/* accounts.c */
	struct uuid id;
	struct log log;
	char host[MSG_HOST_SIZE];
	struct host *server; /* NULL until the facts have come */
	uint64_t listing;    /* the last reconcile that named it live */

	/* takeover.c, release.c, ownership.c */
	enum ownership_state state;
	bool is_asked;	   /* TAKING: the clerk is at it */
	int64_t epoch;	   /* the fencing token of this ownership */
	int64_t deadline_boot_msecs;
	int64_t since_mono; /* owned */
	struct uuid user_id;
	char email[MSG_EMAIL_SIZE];
	int64_t conn_cap; /* of its server, by quirks; 0: the usual number */
	int64_t avoid_msecs; /* LEAVING: not claimed again for so long */
	char leave_why[64];

	/* tiers.c; accounts.c: when mail was seen last */
	enum tier tier;
	const char *rule; /* what gave it */
	struct tier_facts facts;
	int64_t session_until_mono;
	int64_t active_until_mono; /* user.active is believed without a key */
	bool has_hints;	      /* Redis was asked since the claim */
	bool is_over_budget;  /* hot by rule, but the budget is spent */
	enum no_idle no_idle; /* hot, but polled often instead */

	/* dispatch.c starts; accounts.c lets them go */
	struct schedule schedule; /* by policy.c */
	struct child *hot, *pool;
	unsigned pool_scope; /* of the pass under way */
	bool is_wanted_near, is_wanted_full; /* since it began */

	/* pass_result.c */
	int64_t single_until_mono; /* one connection at a time */
	int64_t idle_stale_until_mono; /* IDLE is of no use */
	struct lag lag; /* what polls saw of INBOX while a hot child idled */
	int64_t last_pass_secs;
	uint64_t passes;

	struct health health;
};

struct accounts_params {
	struct master *m;
	void (*on_due)(struct master *m);    /* as asked for */
	void (*on_evaluate)(struct master *m); /* each tier_interval */
};

struct accounts *accounts_new(const struct accounts_params *params);
void accounts_free(struct accounts **accounts);

/* --- who is there --------------------------------------------------------- */

/* TAKING; it must not be there. */
struct account *accounts_add(struct accounts *accounts, const struct uuid *id,
    int64_t deadline_boot_msecs);
/* Its lease holds until then; its children hear of it. */
void accounts_renew(struct accounts *accounts, const struct uuid *id,
    int64_t deadline_boot_msecs);
/* Its children, if any, have nobody to work for. */
void accounts_forget(struct accounts *accounts, struct account *account);
struct account *account_find(const struct accounts *accounts,
    const struct uuid *id);
/* By id or address. */
struct account *account_find_named(const struct accounts *accounts,
    const char *name);
/* for (at = 0; (account = accounts_next(accounts, &at)) != NULL;) */
struct account *accounts_next(const struct accounts *accounts, size_t *at);
/* All of them, to be freed: for those who change the table meanwhile. */
struct account **accounts_list(const struct accounts *accounts, size_t *n_r);
size_t accounts_count(const struct accounts *accounts);
size_t accounts_of_tier(const struct accounts *accounts, enum tier tier);
/* Hot accounts that do not idle for this reason; NO_IDLE_COUNT: for any. */
size_t accounts_polled_instead(const struct accounts *accounts,
    enum no_idle why);

/* --- one of them ---------------------------------------------------------- */

/* State or tier has changed: they stand before each of its log lines. */
void account_set_log(struct account *account);
void account_set_host(struct account *account, struct accounts *accounts,
    const char *name);
/* Its newest mail: that may change its tier. */
void account_saw_mail(struct account *account, struct accounts *accounts,
    int64_t mail_secs);
bool account_is_idling(const struct account *account);
/* The child has ended, or its pass has. */
void account_drop_child(struct account *account, struct child *child);
/* As soon as may be: all folders; what is near. */
void account_poll_now(struct account *account, struct accounts *accounts);
void account_poll_near(struct account *account, struct accounts *accounts);
/* The pass is over: what was asked for meanwhile it may not have seen. */
void account_poll_again(struct account *account);

/* --- what is to be looked at ---------------------------------------------- */

/* Something changed: on_due comes at the end of this turn of the loop. */
void accounts_look_soon(struct accounts *accounts);
/* on_due has begun: what is asked for from here on is new. */
void accounts_look_begins(struct accounts *accounts);
/* ... and ends: the next comes then, or at once if it was asked for. */
void accounts_look_ends(struct accounts *accounts, int64_t in_msecs);

/* The hot budget and the places for IDLE are to be shared out anew. */
void accounts_budget_changed(struct accounts *accounts);
bool accounts_budget_is_stale(const struct accounts *accounts);
void accounts_budget_is_shared(struct accounts *accounts);

/* Reconcile lists the live accounts: one that is ours and not among them has
 * left without our hearing of it (R-LIFE-3). */
void accounts_listing_begins(struct accounts *accounts);
void accounts_listed(struct accounts *accounts, const struct uuid *ids,
    size_t n);
bool account_is_unlisted(const struct account *account,
    const struct accounts *accounts);

#endif
