/*
 * messages.h - what children say, and that they came and went.
 *
 * Runs in: master.  Never blocks.
 */
#ifndef MASTER_MESSAGES_H
#define MASTER_MESSAGES_H

#include "ipc/channel.h"

struct child;

/* For children_params; arg is the master. */
void messages_on_message(void *arg, struct child *child,
    const struct frame *frame);
void messages_on_ready(void *arg, struct child *child);
void messages_on_end(void *arg, struct child *child);

#endif
