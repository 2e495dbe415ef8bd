/*
 * relay.h - what children say.
 *
 * Runs in: master.  Never blocks.
 */
#ifndef MASTER_RELAY_H
#define MASTER_RELAY_H

#include "ipc/channel.h"

struct child;
struct master;

/* For children.c; arg is the master. */
void relay_message(void *arg, struct child *child, const struct frame *frame);
void relay_ready(void *arg, struct child *child);
void relay_end(void *arg, struct child *child);
/* For grants.c: the answer goes to the child of that generation. */
void relay_grant(void *arg, uint32_t generation,
    const struct msg_grant *grant);
/* From the subscribed connection: one event as JSON. */
void relay_event(struct master *m, const char *text, size_t len);

#endif
