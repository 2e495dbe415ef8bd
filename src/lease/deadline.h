/*
 * deadline.h - how long a lease may be trusted.
 *
 * Pure: a rule of its own, so that it can be tested and simulated.
 */
#ifndef LEASE_DEADLINE_H
#define LEASE_DEADLINE_H

#include "conf/conf.h"

#include <stdint.h>

/* When a lease that was set at `sent` ends for us: with a margin for clocks
 * and for the time it takes to kill. */
int64_t lease_deadline(const struct conf *conf, int64_t sent_boot_msecs);

#endif
