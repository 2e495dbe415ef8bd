/*
 * policy.c - who is hot, when to poll what, how long to pause.
 *
 * Runs in: master.  Pure.
 */
#include "master/policy.h"

#include "base/backoff.h"
#include "conf/retry.h"
#include "ipc/messages.h"

#include <stdlib.h>

#define HOUR_SECS 3600
#define DAY_SECS 86400

/* A hot account that may not idle is polled so many times more often than a
 * warm one (R-CONN-2). */
#define OFTEN 6

static const char *const tier_names[TIER_COUNT] = {
#define X(symbol, name) [symbol] = name,
	TIERS(X)
#undef X
};

const char *
tier_name(enum tier tier)
{
	return (unsigned)tier < TIER_COUNT ? tier_names[tier] : "unknown";
}

int
tier_parse(const char *name, enum tier *tier_r)
{
	unsigned i;

	for (i = 0; i < TIER_COUNT; i++) {
		if (strcmp(name, tier_names[i]) == 0) {
			*tier_r = i;
			return 0;
		}
	}
	return -1;
}

/* --- tiers -------------------------------------------------------------- */

static bool
policy_is_younger(int64_t then_secs, int64_t now_secs, int64_t age_secs)
{
	/* A date in the future is a wrong clock somewhere, not news. */
	return then_secs > 0 && then_secs <= now_secs + HOUR_SECS &&
	    now_secs - then_secs < age_secs;
}

enum tier
policy_tier(const struct conf *conf, const struct tier_facts *facts,
    int64_t now_secs, const char **rule_r)
{
	int64_t cold_after = conf->tier_cold_after_d * DAY_SECS;

	if (facts->is_pinned) {
		*rule_r = "pinned by an operator";
		return facts->pin;
	}
	if (facts->has_session) {
		*rule_r = "the user has a session";
		return TIER_HOT;
	}
	if (policy_is_younger(facts->last_mail_secs, now_secs,
		conf->tier_hot_activity_h * HOUR_SECS)) {
		*rule_r = "mail within tier_hot_activity_h";
		return TIER_HOT;
	}
	if (policy_is_younger(facts->last_mail_secs, now_secs, cold_after) ||
	    policy_is_younger(facts->last_active_secs, now_secs, cold_after)) {
		*rule_r = "mail or session within tier_cold_after_d";
		return TIER_WARM;
	}
	*rule_r = "no mail or session within tier_cold_after_d";
	return TIER_COLD;
}

/* Among equals, who idles goes on: nobody is the better for a change. */
static int
policy_by_claim_to_be_hot(const void *va, const void *vb)
{
	const struct hot_candidate *a = va, *b = vb;

	if (a->is_exempt != b->is_exempt)
		return a->is_exempt ? -1 : 1;
	if (a->last_activity_secs != b->last_activity_secs)
		return a->last_activity_secs > b->last_activity_secs ? -1 : 1;
	return (int)b->has_place - (int)a->has_place;
}

size_t
policy_budget(struct hot_candidate *candidates, size_t n, size_t budget)
{
	size_t within = budget < n ? budget : n;

	qsort(candidates, n, sizeof(*candidates), policy_by_claim_to_be_hot);
	while (within < n && candidates[within].is_exempt)
		within++;
	return within;
}

size_t
policy_idle_share(size_t cap)
{
	return cap - (cap + 4) / 5;
}

static int
policy_by_claim_to_a_place(const void *va, const void *vb)
{
	const struct hot_candidate *a = va, *b = vb;

	if (a->is_exempt != b->is_exempt)
		return a->is_exempt ? -1 : 1;
	if (a->has_place != b->has_place)
		return a->has_place ? -1 : 1;
	return policy_by_claim_to_be_hot(va, vb);
}

size_t
policy_places(struct hot_candidate *candidates, size_t n, size_t places)
{
	qsort(candidates, n, sizeof(*candidates), policy_by_claim_to_a_place);
	return places < n ? places : n;
}

static const char *const no_idle_names[NO_IDLE_COUNT] = {
#define X(symbol, name, reason) [symbol] = name,
	NO_IDLES(X)
#undef X
};

static const char *const no_idle_reasons[NO_IDLE_COUNT] = {
#define X(symbol, name, reason) [symbol] = reason,
	NO_IDLES(X)
#undef X
};

const char *
no_idle_name(enum no_idle why)
{
	return no_idle_names[why];
}

const char *
no_idle_reason(enum no_idle why)
{
	return no_idle_reasons[why];
}

/* --- schedule ----------------------------------------------------------- */

static int64_t
policy_random_point(int64_t interval, uint32_t random)
{
	return interval > 0 ? (int64_t)(random % (uint64_t)interval) : 0;
}

void
policy_again(struct schedule *schedule, int64_t when)
{
	if (schedule->near > when)
		schedule->near = when;
}

int64_t
policy_near_msecs(const struct conf *conf, enum tier tier, bool is_idling)
{
	int64_t often = conf->poll_warm * 1000 / OFTEN;

	switch (tier) {
	case TIER_HOT:
		if (is_idling)
			return conf->poll_warm * 1000;
		return often > 1000 ? often : 1000;
	case TIER_WARM:
		return conf->poll_warm * 1000;
	default:
		return conf->poll_cold * 1000;
	}
}

void
policy_start(const struct conf *conf, enum tier tier, int64_t now,
    uint32_t random, struct schedule *schedule)
{
	int64_t soon = conf->claim_interval * 1000;
	int64_t near = policy_near_msecs(conf, tier, true);

	/* Never in step, but nobody waits an interval for the first look. */
	if (soon > near)
		soon = near;
	schedule->full = now + 1 + policy_random_point(soon, random);
	schedule->near = now + policy_random_point(near, random * 2654435761u);
	schedule->far = now +
	    policy_random_point(conf->poll_cold * 1000, random * 40503u);
}

void
policy_hot_looks(const struct conf *conf, int64_t now, uint32_t random,
    struct schedule *schedule)
{
	int64_t soon = conf->claim_interval * 1000;

	if (schedule->full != 0)
		schedule->full = now + soon + policy_random_point(soon, random);
}

void
policy_adjust(const struct conf *conf, enum tier tier, bool is_idling,
    int64_t now, uint32_t random, struct schedule *schedule)
{
	int64_t near = policy_near_msecs(conf, tier, is_idling);

	if (schedule->near > now + near)
		schedule->near = now + policy_random_point(near, random);
}

unsigned
policy_due(const struct schedule *schedule, bool is_idling, int64_t now)
{
	unsigned scope = 0;

	if (schedule->full != 0 && schedule->full <= now)
		return SCOPE_ALL;
	if (schedule->near <= now)
		scope |= is_idling ? SCOPE_SPECIAL | SCOPE_PEEK :
		    SCOPE_INBOX | SCOPE_SPECIAL;
	if (schedule->far <= now)
		scope |= SCOPE_OTHER | SCOPE_LIST;
	return scope;
}

int64_t
policy_next(const struct schedule *schedule)
{
	int64_t next = schedule->near < schedule->far ? schedule->near :
	    schedule->far;

	return schedule->full != 0 && schedule->full < next ? schedule->full :
	    next;
}

void
policy_passed(const struct conf *conf, int64_t near_msecs, unsigned scope,
    int64_t now, uint32_t random, struct schedule *schedule)
{
	/* After the first full pass the random points stand. */
	if (scope == SCOPE_ALL) {
		bool is_first = schedule->full != 0;

		schedule->full = 0;
		if (is_first && schedule->near > now && schedule->far > now)
			return;
	}
	if (scope & SCOPE_SPECIAL)
		schedule->near = now + jitter_msecs(near_msecs, 10, random);
	if (scope & SCOPE_OTHER)
		schedule->far = now + jitter_msecs(conf->poll_cold * 1000, 10,
		    random * 2654435761u);
}

/* --- failures ----------------------------------------------------------- */

int64_t
policy_pause(const struct conf *conf, enum err_kind kind, unsigned failures,
    int64_t retry_after_secs, uint32_t random)
{
	const struct err failure = {.kind = kind,
	    .retry_after_secs = retry_after_secs > UINT32_MAX
				    ? UINT32_MAX
				    : (uint32_t)retry_after_secs};

	return retry_msecs(conf, RETRY_PASS, &failure, failures, random);
}

/* Multiples of backoff_max: the time within which all that is temporary has
 * been tried again. */
int64_t
policy_single_msecs(const struct conf *conf)
{
	return conf->backoff_max * 1000 * 3;
}

int64_t
policy_slowed_msecs(const struct conf *conf)
{
	return conf->backoff_max * 1000;
}

int64_t
policy_idle_stale_msecs(const struct conf *conf)
{
	return conf->backoff_max * 1000 * 6;
}

int64_t
policy_grace_msecs(const struct conf *conf)
{
	int64_t grace = conf->poll_warm * 1000 / 12;

	return grace > 2000 ? grace : 2000;
}

enum lag_result
lag_step(struct lag *lag, bool is_lagging, int64_t generation,
    uint64_t mark, int64_t now, int64_t grace_msecs)
{
	if (!is_lagging || mark == lag->futile) {
		lag->since = 0;
		return LAG_NONE;
	}
	if (lag->since == 0 || lag->generation != generation) {
		/* Replaced for this very state, and it is still so. */
		if (lag->times > 0 && lag->mark == mark &&
		    lag->generation == generation) {
			lag->futile = mark;
			lag->times--;
			return LAG_NONE;
		}
		lag->since = now;
		lag->generation = generation;
		lag->mark = mark;
		return LAG_WAIT;
	}
	if (now - lag->since < grace_msecs)
		return LAG_WAIT;
	lag->since = 0;
	lag->times++;
	return LAG_STALE;
}

void
logins_note(struct logins *logins, int64_t now)
{
	logins->at[0] = logins->at[1];
	logins->at[1] = now;
}

int64_t
logins_next(const struct logins *logins)
{
	return logins->at[0] == 0 ? 0 : logins->at[0] + LOGIN_WINDOW_MSECS;
}
