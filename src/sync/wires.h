/*
 * wires.h - folders by their wire names.
 *
 * Lists of folders are as long as a server likes, so nothing looks through
 * one list for each entry of another.  Pure.
 */
#ifndef SYNC_WIRES_H
#define SYNC_WIRES_H

#include "base/arena.h"

#include <stdint.h>

#define WIRES_NONE SIZE_MAX /* not in the list */

struct wires {
	struct wire_at {
		const char *wire;
		size_t at; /* in the list */
	} *sorted;
	size_t n;
};

/* Of `n` structs of `size` bytes; `first`: the wire name in the first one. */
struct wires wires_of(struct arena *arena, const char *const *first,
    size_t size, size_t n);
#define WIRES_OF(arena, list, n)                                        \
	wires_of(arena, (n) > 0 ? &(list)[0].wire : NULL,               \
	    sizeof((list)[0]), n)
/* The place of that name in the list, the first of several, or WIRES_NONE. */
size_t wires_find(const struct wires *wires, const char *wire);

#endif
