/*
 * share.c - how many accounts a worker should have.
 *
 * Runs in: master.  Pure.
 *
 * The claimer stops at target + slack and the rebalancer starts at a higher
 * mark and goes down to the target, so that between the two there is a band
 * in which nothing moves: workers never take and shed in turns.
 */
#include "lease/share.h"

size_t
share_target(const struct share *share)
{
	size_t workers = share->workers ? share->workers : 1;

	return (share->live + workers - 1) / workers;
}

size_t
share_claim(const struct share *share)
{
	size_t target = share_target(share);
	size_t limit = target + target / 10 + 1;

	if (share->left_over_rounds >= SHARE_PATIENCE ||
	    limit > share->max)
		limit = share->max;
	return share->owned < limit ? limit - share->owned : 0;
}

size_t
share_shed(const struct share *share)
{
	size_t workers = share->workers;

	/* A worker alone keeps what it has: nobody would take it.  Above 1.2
	 * times live / workers, plus 5; exactly, for small numbers matter. */
	if (workers <= 1 ||
	    share->owned * 5 * workers <= share->live * 6 + 25 * workers)
		return 0;
	return share->owned - share_target(share);
}
