/*
 * loop.h - what is done first in a turn of the loop; one line for a timer.
 */
#ifndef REDIS_LOOP_H
#define REDIS_LOOP_H

#include <event2/event.h>

#include <stdint.h>

/*
 * Priorities of the events of a master: of what is due at the same time, the
 * deadlines of leases come first (after a suspend or SIGSTOP everything is due
 * at once), then the word of Redis, then all the rest (R-LEASE-5).
 */
enum {
	LOOP_DEADLINES,
	LOOP_REDIS,
	LOOP_REST, /* what libevent gives when nothing is said: n / 2 */
	LOOP_PRIORITIES = 2 * LOOP_REST,
};

/* Arms (or re-arms) a timer made with event_new(base, -1, 0, ...). */
static inline void
event_in_msecs(struct event *event, int64_t msecs)
{
	struct timeval tv;

	if (msecs < 0)
		msecs = 0;
	tv.tv_sec = msecs / 1000;
	tv.tv_usec = (msecs % 1000) * 1000;
	event_add(event, &tv);
}

#endif
