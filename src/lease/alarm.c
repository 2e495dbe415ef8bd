/*
 * alarm.c - a timer on the clock that also counts suspend.
 *
 * Runs in: master.  Never blocks.
 */
#include "lease/alarm.h"

#include "base/log.h"
#include "base/xmem.h"
#include "redis/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct alarm {
	int fd;
	struct event *event;
	void (*on_due)(void *arg);
	void *arg;
};

static void
alarm_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct alarm *alarm = arg;
	uint64_t times;

	(void)what;
	/* EAGAIN: set anew between the poll and now; it rings later. */
	if (read((int)fd, &times, sizeof(times)) == -1) {
		if (errno != EAGAIN)
			log_error(NULL, "alarm: %s", strerror(errno));
		return;
	}
	alarm->on_due(alarm->arg);
}

void
alarm_set(struct alarm *alarm, int64_t boot_msecs)
{
	struct itimerspec spec = { .it_value = {
		.tv_sec = boot_msecs / 1000,
		.tv_nsec = boot_msecs % 1000 * 1000000 } };

	if (timerfd_settime(alarm->fd, TFD_TIMER_ABSTIME, &spec, NULL) == -1)
		die_bug("alarm not set: %s", strerror(errno));
}

struct alarm *
alarm_new(struct event_base *base, void (*on_due)(void *arg), void *arg)
{
	struct alarm *alarm = xcalloc(1, sizeof(*alarm));

	alarm->on_due = on_due;
	alarm->arg = arg;
	alarm->fd = timerfd_create(CLOCK_BOOTTIME,
	    TFD_NONBLOCK | TFD_CLOEXEC);
	if (alarm->fd == -1)
		die_bug("alarm not made: %s", strerror(errno));
	alarm->event = event_new(
	    base, alarm->fd, EV_READ | EV_PERSIST, alarm_on_readable, alarm);
	event_priority_set(alarm->event, LOOP_DEADLINES);
	event_add(alarm->event, NULL);
	return alarm;
}

void
alarm_free(struct alarm **alarm_p)
{
	struct alarm *alarm = *alarm_p;

	if (alarm == NULL)
		return;
	*alarm_p = NULL;
	event_free(alarm->event);
	close(alarm->fd);
	free(alarm);
}
