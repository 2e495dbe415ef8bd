/*
 * quarantine.h - trouble is put down to what causes it.  Private to sync.
 */
#ifndef SYNC_QUARANTINE_H
#define SYNC_QUARANTINE_H

#include "sync/backfill.h"

/*
 * A piece of work has failed.  True: it was a connection that ended at one
 * folder or message, and that is noted; the work goes on without it, on a new
 * connection.  Everything of the pass is forgotten then.
 */
bool quarantine_goes_on(struct session *s, const struct err *failure);

/* For a new pass. */
void quarantine_begin(struct session *s);

/* What waits and is due, one after the other; the last thing in a pass. */
int quarantine_retry(struct session *s, struct backfill_budget *budget,
    struct err *err);

#endif
