/*
 * event_hub.c - events (lease/events.h): of our children, and of others.
 *
 * Runs in: master.  Never blocks.
 */
#include "master/event_hub.h"

#include "lease/hints.h"
#include "master/state.h"
#include "redis/events.h"

#include <string.h>

void
event_hub_publish(struct master *m, const struct msg_event *event)
{
	m->counters.events++;
	if (event->event == EVENT_QUARANTINE &&
	    strcmp(event->name, "parked") == 0)
		m->counters.quarantined++;
	m->role->on_event(m, event, true);
	hints_publish(m->redis, event);
}

void
event_hub_hear(struct master *m, const char *text, size_t len)
{
	struct msg_event event;
	struct err err = ERR_INIT;

	if (event_parse(text, len, &event, &err) == -1)
		log_debug(NULL, "event ignored: %s", err.text);
	else if (!m->is_stopping)
		m->role->on_event(m, &event, false);
}
