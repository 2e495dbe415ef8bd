/*
 * breaks.c - spoils one rule of the product on purpose, to see whether the
 * judge notices.
 *
 * The linker (--wrap) sends calls of these functions here first.  Rules that
 * live in Redis, PostgreSQL, clocks and children are spoilt in their files.
 */
#include "world.h"

#include "lease/deadline.h"
#include "lease/share.h"
#include "master/policy.h"

int64_t __real_lease_deadline(const struct conf *conf, int64_t sent);
int64_t __wrap_lease_deadline(const struct conf *conf, int64_t sent);
size_t __real_share_claim(const struct share *share);
size_t __wrap_share_claim(const struct share *share);
size_t __real_share_shed(const struct share *share);
size_t __wrap_share_shed(const struct share *share);
enum tier __real_policy_tier(const struct conf *conf,
    const struct tier_facts *facts, int64_t now, const char **rule_r);
enum tier __wrap_policy_tier(const struct conf *conf,
    const struct tier_facts *facts, int64_t now, const char **rule_r);
size_t __real_policy_budget(struct hot_candidate *candidates, size_t n,
    size_t budget);
size_t __wrap_policy_budget(struct hot_candidate *candidates, size_t n,
    size_t budget);

int64_t
__wrap_lease_deadline(const struct conf *conf, int64_t sent)
{
	if (sim.broken == BREAK_ANSWER) /* as late as src/master lets it be */
		return __real_lease_deadline(conf, sent +
		    (conf->lease_ttl > 40 ? 10000 : conf->lease_ttl * 250));
	if (sim.broken == BREAK_MARGIN)
		return sent + conf->lease_ttl * 1000;
	return __real_lease_deadline(conf, sent);
}

size_t
__wrap_share_claim(const struct share *share)
{
	if (sim.broken == BREAK_GREED || sim.broken == BREAK_BAND)
		return share->owned < share->max ? share->max - share->owned :
		    0;
	return __real_share_claim(share);
}

size_t
__wrap_share_shed(const struct share *share)
{
	size_t target = share_target(share);

	if (sim.broken == BREAK_GREED)
		return 0;
	if (sim.broken == BREAK_BAND)
		return share->workers > 1 && share->owned > target ?
		    share->owned - target : 0;
	return __real_share_shed(share);
}

enum tier
__wrap_policy_tier(const struct conf *conf, const struct tier_facts *facts,
    int64_t now, const char **rule_r)
{
	struct tier_facts spoilt = *facts;

	if (sim.broken == BREAK_TIER)
		spoilt.has_session = false;
	return __real_policy_tier(conf, &spoilt, now, rule_r);
}

size_t
__wrap_policy_budget(struct hot_candidate *candidates, size_t n, size_t budget)
{
	size_t i;

	for (i = 0; sim.broken == BREAK_DEGRADE && i < n; i++)
		candidates[i].is_exempt = false;
	if (sim.broken == BREAK_BUDGET)
		budget = n;
	return __real_policy_budget(candidates, n, budget);
}

/* --- scripts -------------------------------------------------------------- */

static const struct {
	enum broken broken;
	const char *name, *source;
} scripts[] = {
	{ BREAK_RENEW, "renew",
	    "for i, key in ipairs(KEYS) do\n"
	    "  redis.call('set', key, ARGV[1], 'EX', ARGV[2])\n"
	    "end\n"
	    "return {}\n" },
	{ BREAK_LEAK, "renew",
	    "for i, key in ipairs(KEYS) do\n"
	    "  if redis.call('get', key) == ARGV[1] then\n"
	    "    redis.call('expire', key, ARGV[2])\n"
	    "  end\n"
	    "end\n"
	    "return {}\n" },
	{ BREAK_RELEASE, "release",
	    "redis.call('sadd', KEYS[3], ARGV[2])\n"
	    "return redis.call('del', KEYS[1])\n" },
};

const char *
break_script(const char *name, const char *source)
{
	size_t i;

	for (i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (scripts[i].broken == sim.broken &&
		    strcmp(scripts[i].name, name) == 0)
			return scripts[i].source;
	return source;
}
