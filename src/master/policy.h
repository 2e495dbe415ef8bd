/*
 * policy.h - who is hot, when to poll what, how long to pause.
 *
 * Pure: clocks and random numbers are parameters (R-TIER-*, R-LIFE-6).
 */
#ifndef MASTER_POLICY_H
#define MASTER_POLICY_H

#include "base/err.h"
#include "conf/conf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* symbol, name in sync:tier:{id} and in logs; warmest first */
#define TIERS(X)                \
	X(TIER_HOT, "hot")      \
	X(TIER_WARM, "warm")    \
	X(TIER_COLD, "cold")
enum tier {
#define X(symbol, name) symbol,
	TIERS(X)
#undef X
	    TIER_COUNT
};
const char *tier_name(enum tier tier);
int tier_parse(const char *name, enum tier *tier_r);

struct tier_facts {
	int64_t last_mail_secs, last_active_secs; /* wall clock; 0: never */
	bool has_session;
	bool is_pinned; /* by an operator */
	enum tier pin;
};
/* `rule_r`: why, for people. */
enum tier policy_tier(const struct conf *conf, const struct tier_facts *facts,
    int64_t now_secs, const char **rule_r);

/* An account that would be hot. */
struct hot_candidate {
	size_t index; /* the caller's */
	int64_t last_activity_secs;
	bool is_exempt; /* session or pin: never degraded (R-TIER-5) */
};
/* Sorts so that those within the budget come first; returns how many. */
size_t policy_budget(struct hot_candidate *candidates, size_t n,
    size_t budget);

/*
 * When an account is polled next (mono msecs).  near: INBOX and the special
 * folders, or the special ones alone while a hot child idles on INBOX; far:
 * the other folders, and LIST; full: everything at once, 0: not wanted.
 */
struct schedule {
	int64_t near, far, full;
};
/* How often the near poll comes. */
int64_t policy_near_msecs(const struct conf *conf, enum tier tier,
    bool is_idling);
/* Just claimed: everything once, soon; then at random points (R-TIER-6). */
void policy_start(const struct conf *conf, enum tier tier, int64_t now,
    uint32_t random, struct schedule *schedule);
/* The tier (or idling) changed: a poll further away than the new interval
 * comes nearer. */
void policy_adjust(const struct conf *conf, enum tier tier, bool is_idling,
    int64_t now, uint32_t random, struct schedule *schedule);
/* Scope (enum scope of ipc/messages.h) that is due, 0: none. */
unsigned policy_due(const struct schedule *schedule, bool is_idling,
    int64_t now);
int64_t policy_next(const struct schedule *schedule);
/* A pass over `scope` went well. */
void policy_passed(const struct conf *conf, enum tier tier, bool is_idling,
    unsigned scope, int64_t now, uint32_t random, struct schedule *schedule);

/* After the nth failure in a row of this kind: how long to leave the account
 * alone. */
int64_t policy_pause(const struct conf *conf, enum err_kind kind,
    unsigned failures, int64_t retry_after_secs, uint32_t random);

/* The last two logins, kept while the server refuses them. */
#define LOGIN_WINDOW_MSECS 120000
struct logins {
	int64_t at[2]; /* mono; 0: none */
};
void logins_note(struct logins *logins, int64_t now);
/* When the next may be tried: never 3 in 120 s (R-LIFE-6). */
int64_t logins_next(const struct logins *logins);

#endif
