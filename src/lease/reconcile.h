/*
 * reconcile.h - making sync:live equal to PostgreSQL (R-LEASE-1).
 *
 * Runs in: master.  Never blocks.  Adds and removes ids only, never touches a
 * lease.
 */
#ifndef LEASE_RECONCILE_H
#define LEASE_RECONCILE_H

#include "base/uuid.h"

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct reconcile;
struct redis;

/* ask: the set has been read, now get the ids from PostgreSQL (reconcile_add
 * ..., reconcile_end).  on_done: it went well, and so many ids were
 * added. */
struct reconcile *reconcile_new(struct event_base *base, struct redis *redis,
    void (*ask)(void *arg), void (*on_done)(void *arg, size_t n_added),
    void *arg);
void reconcile_free(struct reconcile **reconcile);

/* n_expected: ids there will be, about. */
void reconcile_start(struct reconcile *reconcile, size_t n_expected);
void reconcile_add(struct reconcile *reconcile, const struct uuid *ids,
    size_t n);
/* The connection to Redis is gone. */
void reconcile_forget(struct reconcile *reconcile);
/* Once for each time it asked, in that order.  An answer to an older question
 * is not taken for one to the last: part of a list would remove the rest.
 * All ids came (or not: then nothing is changed).  The changes go out in the
 * turns of the loop after that, some in each. */
void reconcile_end(struct reconcile *reconcile, bool is_complete);

/* An account changed its state: the set is put right at once, and a
 * reconcile under way leaves it alone. */
void reconcile_set_live(struct reconcile *reconcile, const struct uuid *id,
    bool is_live);

#endif
