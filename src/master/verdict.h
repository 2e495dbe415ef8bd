/*
 * verdict.h - what the end of a pass or of a child means for its account.
 *
 * Runs in: master.  Never blocks.
 */
#ifndef MASTER_VERDICT_H
#define MASTER_VERDICT_H

#include "master/state.h"

struct account;
struct child;

/* A hot or pool child of an account we own reports a pass. */
void verdict_pass(struct master *m, struct child *child,
    struct account *account, const struct msg_pass_done *done);
/* The hot child has reached IDLE. */
void verdict_idling(struct master *m, struct child *child,
    struct account *account);
/* A hot or pool child is gone; its account may be gone, too. */
void verdict_end(struct master *m, struct child *child);

#endif
