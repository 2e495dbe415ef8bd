/*
 * ownership.h - which accounts are ours: what the keeper of the leases and the
 * table of accounts tell each other, and who else has a word in it.
 *
 * Runs in: master of the sync role.  Never blocks.
 */
#ifndef MASTER_OWNERSHIP_H
#define MASTER_OWNERSHIP_H

#include "base/uuid.h"
#include "master/state.h"

/* Makes and frees m->accounts, m->polls and m->keeper. */
void ownership_start(struct master *m);
void ownership_end(struct master *m);
/* What was put off is done now, not at the next interval: who waits because of
 * PostgreSQL alone need not wait any longer. */
void ownership_on_postgres_up(struct master *m);
/* account.state_changed (R-LIFE-2); may free the account. */
void ownership_on_state(struct master *m, const struct uuid *id,
    const char *state, const char *reason);
/* The clerk: a page of all live accounts. */
void ownership_on_live_ids(struct master *m, const struct uuid *ids,
    size_t n);

#endif
