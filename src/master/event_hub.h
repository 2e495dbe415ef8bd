/*
 * event_hub.h - events (lease/events.h): of our children, and of others.
 *
 * Runs in: master.  Never blocks.
 */
#ifndef MASTER_EVENT_HUB_H
#define MASTER_EVENT_HUB_H

#include "ipc/messages.h"

#include <stddef.h>

struct master;

/* A child of this worker tells: this role hears it first, then all others. */
void event_hub_publish(struct master *m, const struct msg_event *event);
/* From the subscribed connection: one event as JSON. */
void event_hub_hear(struct master *m, const char *text, size_t len);

#endif
