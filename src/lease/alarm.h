/*
 * alarm.h - a timer on the clock that also counts suspend.
 *
 * Runs in: master.  Never blocks.
 *
 * libevent's timers stand still while the host sleeps, and what lapsed
 * meanwhile would be noticed late: deadlines of leases use this instead.
 */
#ifndef LEASE_ALARM_H
#define LEASE_ALARM_H

#include "base/banned.h"

#include <stdint.h>

struct alarm;
struct event_base;

struct alarm *alarm_new(struct event_base *base, void (*on_due)(void *arg),
    void *arg);
void alarm_free(struct alarm **alarm);

/* Rings once, at that time of CLOCK_BOOTTIME (soon when it has passed);
 * replaces what was set before. */
void alarm_set(struct alarm *alarm, int64_t boot_msecs);

#endif
