/*
 * ingest.h - from UIDs to rows: fetch, parse, blob, commit, overlapping.
 *
 * Private to sync.
 */
#ifndef SYNC_INGEST_H
#define SYNC_INGEST_H

#include "sync/state.h"

/*
 * One folder's download, which must be the selected one.  The last commit may
 * still be in flight when ingest_messages returns; ingest_finish waits for
 * it.  Holds a parse slot and a PostgreSQL session between start and finish.
 */
struct ingest;

int ingest_start(struct ingest **in_r, struct session *s,
    struct folder *folder, struct err *err);

/*
 * Fetches and stores `wanted` (sorted by UID; size is a hint, 0 unknown).
 * With `base` the cursor follows the messages: each commit moves its uidnext
 * to the first UID that is not stored yet, and counts its messages.  `target`
 * is the cursor when all are stored.  Both NULL: the cursor stays.
 */
int ingest_messages(struct ingest *in, const struct place *wanted, size_t n,
    const struct cursor *base, const struct cursor *target, struct err *err);

/* Waits for the commit in flight: before any other use of the database. */
int ingest_wait(struct ingest *in, struct err *err);

/* Waits for the last commit and gives everything back; with `err` NULL after
 * an error, when the outcome no longer matters. */
int ingest_finish(struct ingest **in, struct err *err);

#endif
