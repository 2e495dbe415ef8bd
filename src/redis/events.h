/*
 * events.h - events as the outside sees them: JSON on a Redis channel.
 *
 *	events:NAME   {"event":NAME,"ts":SECONDS,"payload":{...}}
 *
 * Pure; who sends and receives is redis/redis.h.
 */
#ifndef REDIS_EVENTS_H
#define REDIS_EVENTS_H

#include "base/err.h"
#include "ipc/messages.h"

#include <stddef.h>

#define EVENT_CHANNEL_SIZE 64

/* "events:message.new", without the prefix of the installation. */
const char *event_channel(enum event_name event, char *out, size_t size);

/* One line of JSON, to be freed.  Text is made valid UTF-8 on the way. */
char *event_format(const struct msg_event *event, int64_t ts_secs);

/*
 * Reads such a line.  Unknown members are ignored, missing ones are zero;
 * ERR_PROTOCOL when it is no event of ours or an id is malformed.
 */
int event_parse(const char *json, size_t len, struct msg_event *event_r,
    struct err *err);

#endif
