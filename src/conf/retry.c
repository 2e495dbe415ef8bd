/*
 * retry.c - when to try again after a failure.
 *
 * Runs in: every process.  Pure.
 */
#include "conf/retry.h"

#include "base/backoff.h"

#define HOUR_SECS 3600
#define DAY_SECS (24 * HOUR_SECS)

struct retry_rule {
	int64_t first_secs, max_secs; /* the growing pause; 0: none */
	int64_t asked_secs;     /* when the server does not say how long */
	int64_t asked_max_secs; /* it cannot ask for more; 0: it can */
	int64_t again_secs;     /* at least, from the second failure on */
};

static struct retry_rule
retry_rule_of_pass(const struct conf *conf, enum err_kind kind)
{
	struct retry_rule rule = {.first_secs = conf->backoff_first,
	    .max_secs = conf->backoff_max,
	    .asked_max_secs = DAY_SECS};

	if (kind == ERR_AUTH) {
		rule.first_secs = conf->auth_pause;
		if (rule.max_secs < 10 * conf->auth_pause)
			rule.max_secs = 10 * conf->auth_pause;
	} else if (kind == ERR_CONFIG)
		rule.first_secs = conf->backoff_max; /* a person must act */
	return rule;
}

static struct retry_rule
retry_rule_of_account(const struct conf *conf, enum err_kind kind)
{
	switch (kind) {
	case ERR_AUTH:
		return (struct retry_rule){.first_secs = conf->auth_pause,
		    .max_secs = 6 * HOUR_SECS,
		    .again_secs = LOGIN_WINDOW_SECS};
	case ERR_THROTTLED:
		return (struct retry_rule){
		    .asked_secs = 300, .asked_max_secs = HOUR_SECS};
	default:
		return (struct retry_rule){.asked_secs = 0};
	}
}

static struct retry_rule
retry_rule_find(const struct conf *conf, enum retry_of of, enum err_kind kind)
{
	switch (of) {
	case RETRY_ACCOUNT:
		return retry_rule_of_account(conf, kind);
	case RETRY_JOB: /* ten attempts reach over ten hours */
		return (struct retry_rule){.first_secs = conf->backoff_first,
		    .max_secs = 6 * conf->backoff_max,
		    .asked_max_secs = DAY_SECS};
	default:
		return retry_rule_of_pass(conf, kind);
	}
}

static int64_t
retry_apply(const struct retry_rule *rule, const struct err *failure,
    unsigned failures, uint32_t random)
{
	int64_t asked = failure->retry_after_secs, pause = 0;

	if (rule->first_secs > 0)
		pause = backoff_msecs(failures, rule->first_secs * 1000,
		    rule->max_secs * 1000, random);
	if (asked == 0)
		asked = rule->asked_secs;
	if (rule->asked_max_secs > 0 && asked > rule->asked_max_secs)
		asked = rule->asked_max_secs;
	if (failures > 1 && asked < rule->again_secs)
		asked = rule->again_secs;
	return pause > asked * 1000 ? pause : asked * 1000;
}

int64_t
retry_msecs(const struct conf *conf, enum retry_of of,
    const struct err *failure, unsigned failures, uint32_t random)
{
	const struct retry_rule rule = retry_rule_find(conf, of, failure->kind);

	return retry_apply(&rule, failure, failures, random);
}

int64_t
retry_msecs_within(int64_t first_secs, int64_t max_secs,
    const struct err *failure, unsigned failures, uint32_t random)
{
	const struct retry_rule rule = {.first_secs = first_secs,
	    .max_secs = max_secs,
	    .asked_max_secs = DAY_SECS};

	return retry_apply(&rule, failure, failures, random);
}
