/*
 * unlisted.h - which of our accounts are no longer in sync:live?
 *
 * Runs in: master.  Never blocks.
 */
#ifndef LEASE_UNLISTED_H
#define LEASE_UNLISTED_H

#include "base/uuid.h"

struct leases;
struct redis;

/* on_unlisted is told of each, some time later; it is still held then. */
void unlisted_find(struct redis *redis, struct leases *leases,
    void (*on_unlisted)(void *arg, const struct uuid *id), void *arg);

#endif
