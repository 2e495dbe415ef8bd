/*
 * takeover.h - from a lease that was won to an account that is owned.
 *
 * Runs in: master of the sync role.  Never blocks.
 */
#ifndef MASTER_TAKEOVER_H
#define MASTER_TAKEOVER_H

#include "base/uuid.h"
#include "ipc/messages.h"

#include <stdint.h>

struct account;
struct master;

/* The lease is ours: the clerk is asked to raise the epoch. */
void takeover_begin(struct master *m, const struct uuid *id,
    int64_t deadline_boot_msecs);
/* Asks again, after a pause. */
void takeover_ask(struct account *account, struct master *m);
/* The account's row, from the clerk: after the claim, or when it may have
 * changed. */
void takeover_on_facts(struct master *m, const struct msg_facts *facts);
/* The row may have changed: the answer comes to takeover_on_facts(). */
void takeover_look_up(struct account *account, struct master *m);

#endif
