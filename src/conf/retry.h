/*
 * retry.h - when to try again after a failure: the one rule for passes,
 * accounts and jobs.
 *
 * Pure: the random number is a parameter.
 */
#ifndef CONF_RETRY_H
#define CONF_RETRY_H

#include "base/err.h"
#include "conf/conf.h"

/* From the first refusal on: never more than 2 logins in this time
 * (R-LIFE-6). */
#define LOGIN_WINDOW_SECS 120

enum retry_of {
	RETRY_PASS,    /* of one child: the master waits */
	RETRY_ACCOUNT, /* its row: everybody waits; 0: nobody has to */
	RETRY_JOB,     /* a job has so many attempts and no more */
};

/*
 * The pause before the next try, in milliseconds, after so many failures in a
 * row.  It grows with them, is never shorter than what the server
 * asked for, within reason, and is spread by 20 % with `random`, any uniform
 * 32-bit number.
 */
int64_t retry_msecs(const struct conf *conf, enum retry_of of,
    const struct err *failure, unsigned failures, uint32_t random);

/* The same for a job whose kind has pauses of its own. */
int64_t retry_msecs_within(int64_t first_secs, int64_t max_secs,
    const struct err *failure, unsigned failures, uint32_t random);

#endif
