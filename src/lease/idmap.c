/*
 * idmap.c - a table from id to something.
 *
 * Runs in: master.  Never blocks.
 *
 * Linear probing at most half full; removal moves followers back, so that
 * there are no graves and a table that lives for months does not degrade.
 */
#include "lease/idmap.h"

#include "base/xmem.h"

#include <stdlib.h>

#define CAP_FIRST 64

static size_t
place_of(const struct idmap *map, const struct uuid *id)
{
	static uint64_t seed;
	uint64_t a, b;

	if (seed == 0)
		seed = ((uint64_t)arc4random() << 32 | arc4random()) | 1;
	memcpy(&a, id->bytes, sizeof(a));
	memcpy(&b, id->bytes + sizeof(a), sizeof(b));
	a = (a ^ seed) * 0x9E3779B97F4A7C15u;
	a = (a ^ (a >> 32) ^ b) * 0xD6E8FEB86659FD93u;
	return (size_t)(a ^ (a >> 32)) & (map->cap - 1);
}

/* Where it is, or the free place where it would go. */
static struct idmap_entry *
idmap_find(const struct idmap *map, const struct uuid *id)
{
	size_t i = place_of(map, id);

	while (map->entries[i].value != NULL &&
	    !uuid_is_equal(&map->entries[i].id, id))
		i = (i + 1) & (map->cap - 1);
	return &map->entries[i];
}

static void
idmap_grow(struct idmap *map, size_t cap)
{
	struct idmap old = *map;
	size_t i;

	map->cap = cap;
	map->entries = xcalloc(map->cap, sizeof(*map->entries));
	for (i = 0; i < old.cap; i++)
		if (old.entries[i].value != NULL)
			*idmap_find(map, &old.entries[i].id) = old.entries[i];
	free(old.entries);
}

void
idmap_reserve(struct idmap *map, size_t n)
{
	size_t cap = map->cap ? map->cap : CAP_FIRST;

	while (n * 2 > cap)
		cap *= 2;
	if (cap > map->cap)
		idmap_grow(map, cap);
}

void *
idmap_get(const struct idmap *map, const struct uuid *id)
{
	return map->n == 0 ? NULL : idmap_find(map, id)->value;
}

void *
idmap_put(struct idmap *map, const struct uuid *id, void *value)
{
	struct idmap_entry *entry;
	void *old;

	idmap_reserve(map, map->n + 1);
	entry = idmap_find(map, id);
	old = entry->value;
	if (old == NULL)
		map->n++;
	entry->id = *id;
	entry->value = value;
	return old;
}

void *
idmap_remove(struct idmap *map, const struct uuid *id)
{
	struct idmap_entry *entry;
	size_t hole, i, home, mask = map->cap - 1;
	void *old;

	if (map->n == 0 || (entry = idmap_find(map, id))->value == NULL)
		return NULL;
	old = entry->value;
	hole = (size_t)(entry - map->entries);
	for (i = (hole + 1) & mask; map->entries[i].value != NULL;
	    i = (i + 1) & mask) {
		home = place_of(map, &map->entries[i].id);
		/* May it stand at the hole without being lost to a search? */
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			map->entries[hole] = map->entries[i];
			hole = i;
		}
	}
	map->entries[hole].value = NULL;
	map->n--;
	return old;
}

void
idmap_release(struct idmap *map)
{
	free(map->entries);
	*map = (struct idmap)IDMAP_INIT;
}

void *
idmap_next(const struct idmap *map, size_t *at, const struct uuid **id_r)
{
	while (*at < map->cap) {
		const struct idmap_entry *entry = &map->entries[(*at)++];

		if (entry->value == NULL)
			continue;
		if (id_r != NULL)
			*id_r = &entry->id;
		return entry->value;
	}
	return NULL;
}
