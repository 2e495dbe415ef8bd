/*
 * deadline.c - how long a lease may be trusted.
 *
 * Runs in: master.  Pure.
 *
 * Redis counts the TTL from the moment it acts, which is some time after the
 * command was sent; we count from the sending, so we end first.  The margin is
 * for two clocks that do not run at the same pace, and for the time it takes
 * to kill.
 */
#include "lease/deadline.h"

int64_t
lease_deadline(const struct conf *conf, int64_t sent_boot_msecs)
{
	int64_t ttl = conf->lease_ttl * 1000;
	int64_t margin = ttl / 10 > 1000 ? ttl / 10 : 1000;

	return sent_boot_msecs + ttl - margin;
}
