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
	bool has_place; /* idles already */
};
/* Sorts so that those within the budget come first; returns how many. */
size_t policy_budget(struct hot_candidate *candidates, size_t n,
    size_t budget);

/* IDLE connections among `cap` to a host: never the last fifth (R-CONN-2). */
size_t policy_idle_share(size_t cap);
/* The same for places at one host: sessions before all others, who idles
 * already before who would have to push another out. */
size_t policy_places(struct hot_candidate *candidates, size_t n,
    size_t places);

/* symbol, name in status, for people: why a hot account does not idle */
#define NO_IDLES(X)                                                         \
	X(IDLE_ALLOWED, "", "")                                             \
	X(NO_IDLE_HOST_FULL, "host_full",                                   \
	    "the last fifth of the connections to its host is for polls")   \
	X(NO_IDLE_HOST_LIMIT, "host_limit",                                 \
	    "its host told several accounts that there are too many "       \
	    "connections")                                                  \
	X(NO_IDLE_ACCOUNT_LIMIT, "account_limit",                           \
	    "the server told this account that it has too many connections")\
	X(NO_IDLE_SILENT, "silent",                                         \
	    "the server had news again and again that it did not tell in "  \
	    "IDLE")
enum no_idle {
#define X(symbol, name, reason) symbol,
	NO_IDLES(X)
#undef X
	    NO_IDLE_COUNT
};
const char *no_idle_name(enum no_idle why);
const char *no_idle_reason(enum no_idle why);

/*
 * When an account is polled next (mono msecs).  near: INBOX and the special
 * folders, or the special ones alone while a hot child idles on INBOX; far:
 * the other folders, and LIST; full: everything at once, 0: not wanted.
 */
struct schedule {
	int64_t near, far, full;
};
/* The near poll comes by then. */
void policy_again(struct schedule *schedule, int64_t when);
/* How often the near poll comes. */
int64_t policy_near_msecs(const struct conf *conf, enum tier tier,
    bool is_idling);
/* Just claimed: everything once, soon; then at random points (R-TIER-6). */
void policy_start(const struct conf *conf, enum tier tier, int64_t now,
    uint32_t random, struct schedule *schedule);
/* A hot child begins, and looks at INBOX first: if nothing has been looked at
 * yet, the rest comes when the others' hot children have begun, too. */
void policy_hot_looks(const struct conf *conf, int64_t now, uint32_t random,
    struct schedule *schedule);
/* The tier (or idling) changed: a poll further away than the new interval
 * comes nearer. */
void policy_adjust(const struct conf *conf, enum tier tier, bool is_idling,
    int64_t now, uint32_t random, struct schedule *schedule);
/* Scope (enum scope of ipc/messages.h) that is due, 0: none. */
unsigned policy_due(const struct schedule *schedule, bool is_idling,
    int64_t now);
int64_t policy_next(const struct schedule *schedule);
/* A pass over `scope` went well; near_msecs: policy_near_msecs(). */
void policy_passed(const struct conf *conf, int64_t near_msecs,
    unsigned scope, int64_t now, uint32_t random, struct schedule *schedule);

/* After the nth failure in a row of this kind: how long to leave the account
 * alone. */
int64_t policy_pause(const struct conf *conf, enum err_kind kind,
    unsigned failures, int64_t retry_after_secs, uint32_t random);

/* After "too many connections": how long the account makes do with one. */
int64_t policy_single_msecs(const struct conf *conf);
/* After a pass that went well though the server slows us down. */
int64_t policy_slowed_msecs(const struct conf *conf);
/* How long IDLE is not tried where it is of no use. */
int64_t policy_idle_stale_msecs(const struct conf *conf);
/* How long a hot child may be behind the server. */
int64_t policy_grace_msecs(const struct conf *conf);

/* What polls saw of INBOX while a hot child was idling on it. */
#define LAG_TIMES_MAX 3 /* times; then IDLE is given up for a while */
struct lag {
	int64_t since; /* mono; 0: it was not behind */
	int64_t generation; /* of the copy */
	uint64_t mark;	    /* of the server */
	uint64_t futile;    /* replacing the child did not help: a mark */
	unsigned times;	    /* replaced since IDLE last told something */
};
enum lag_result { LAG_NONE, LAG_WAIT, LAG_STALE };
enum lag_result lag_step(struct lag *behind, bool is_lagging,
    int64_t generation, uint64_t mark, int64_t now, int64_t grace_msecs);

/* The last two refused logins. */
#define LOGIN_WINDOW_MSECS 120000
struct logins {
	int64_t at[2]; /* mono; 0: none */
};
void logins_note(struct logins *logins, int64_t now);
/* When the next may be tried: never 3 in 120 s (R-LIFE-6). */
int64_t logins_next(const struct logins *logins);

#endif
