/*
 * ownership.h - which accounts are ours: what the keeper of the leases and the
 * table of accounts tell each other.
 *
 * Runs in: master of the sync role.  Never blocks.
 */
#ifndef MASTER_OWNERSHIP_H
#define MASTER_OWNERSHIP_H

#include "master/state.h"

/* Makes and frees m->accounts, m->polls and m->keeper. */
void ownership_begin(struct master *m);
void ownership_end(struct master *m);
/* What was put off is done now, not at the next interval. */
void ownership_postgres_back(struct master *m);

#endif
