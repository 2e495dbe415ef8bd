/*
 * share.h - how many accounts a worker should have.
 *
 * Pure: everything is a parameter, so that the rules can be tested and
 * simulated without Redis (R-LEASE-3, R-LEASE-9).
 */
#ifndef LEASE_SHARE_H
#define LEASE_SHARE_H

#include "base/banned.h"

#include <stddef.h>
#include <stdint.h>

/* After so many rounds nobody with room for them is coming. */
#define SHARE_PATIENCE 2

struct share {
	size_t owned;	/* accounts of this worker */
	size_t live;	/* accounts that want an owner, in all */
	size_t workers; /* alive, this one included; 0 counts as 1 */
	size_t max;	/* max_accounts_per_worker */
	unsigned left_over_rounds; /* rounds in a row in which nobody took them */
};

/* live / workers, rounded up. */
size_t share_target(const struct share *share);

/* How many to claim in this round. */
size_t share_claim(const struct share *share);

/* How many to give up in this rebalance. */
size_t share_shed(const struct share *share);

#endif
