/*
 * pass_result.h - what a pass, or the end of a child, means for its account.
 *
 * Runs in: master of the sync role.  Never blocks.
 */
#ifndef MASTER_PASS_RESULT_H
#define MASTER_PASS_RESULT_H

#include "ipc/messages.h"

struct child;
struct master;

/* A hot or pool child that works for an account reports a pass. */
void pass_result_handle(struct master *m, struct child *child,
    const struct msg_pass_done *done);
/* The hot child has reached IDLE. */
void pass_result_idling(struct master *m, struct child *child);
/* A hot or pool child is gone; its account may be gone, too. */
void pass_result_child_end(struct master *m, struct child *child);

#endif
