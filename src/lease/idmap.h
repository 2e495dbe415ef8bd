/*
 * idmap.h - a table from account (or user, job) id to something.
 *
 * Open addressing; ids come from outside, so they are mixed with a seed.
 * Adding or removing while walking is not allowed.
 */
#ifndef LEASE_IDMAP_H
#define LEASE_IDMAP_H

#include "base/uuid.h"

#include <stddef.h>

struct idmap_entry {
	struct uuid id;
	void *value; /* NULL: free place */
};

struct idmap {
	struct idmap_entry *entries;
	size_t n;
	size_t cap; /* a power of two, or 0 */
};

#define IDMAP_INIT { .entries = NULL }

/* Values are never NULL; for a plain set use IDMAP_PRESENT. */
#define IDMAP_PRESENT ((void *)1)

void *idmap_get(const struct idmap *map, const struct uuid *id);
/* Replaces what was there and returns it, or NULL. */
void *idmap_put(struct idmap *map, const struct uuid *id, void *value);
/* Returns what was there, or NULL. */
void *idmap_remove(struct idmap *map, const struct uuid *id);
/* Room for so many in all, so that adding them takes no time for growth. */
void idmap_reserve(struct idmap *map, size_t n);
/* Frees the table, not the values. */
void idmap_release(struct idmap *map);

/*
 * Walks: for (size_t i = 0; (v = idmap_next(map, &i, &id)) != NULL; ) ...
 * `id_r` may be NULL.
 */
void *idmap_next(const struct idmap *map, size_t *at,
    const struct uuid **id_r);

#endif
