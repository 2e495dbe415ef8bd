/*
 * backoff.c - how long to wait after the nth failure in a row.
 *
 * Runs in: every process.  Pure.
 */
#include "base/backoff.h"

int64_t
jitter_msecs(int64_t interval_msecs, unsigned percent, uint32_t random)
{
	int64_t spread = interval_msecs * percent / 100;

	if (spread <= 0)
		return interval_msecs;
	return interval_msecs - spread + (int64_t)(random % (2 * spread + 1));
}

int64_t
backoff_msecs(unsigned failures, int64_t first_msecs, int64_t max_msecs,
    uint32_t random)
{
	int64_t wait = first_msecs;

	if (failures == 0)
		return 0;
	while (--failures > 0 && wait < max_msecs)
		wait *= 2;
	if (wait > max_msecs)
		wait = max_msecs;
	return jitter_msecs(wait, 20, random);
}
