/*
 * backoff.h - how long to wait after the nth failure in a row.
 *
 * Pure: the random number is a parameter, so that tests and the simulation
 * can replay it.
 */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>

/*
 * first * 2^(failures-1), never above max, then spread by +-20 % so that
 * a fleet that failed together does not return together.  `random` is any
 * uniformly distributed 32-bit number.  failures == 0 gives 0.
 */
int64_t backoff_msecs(unsigned failures, int64_t first_msecs, int64_t max_msecs,
    uint32_t random);

/* interval +- percent %, for schedules (R-TIER-6). */
int64_t jitter_msecs(int64_t interval_msecs, unsigned percent, uint32_t random);

#endif
