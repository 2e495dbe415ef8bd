/*
 * loop.h - one line for a libevent timer.
 */
#ifndef LEASE_LOOP_H
#define LEASE_LOOP_H

#include <event2/event.h>

#include <stdint.h>

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
