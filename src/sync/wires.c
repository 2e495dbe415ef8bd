/*
 * wires.c - folders by their wire names.
 *
 * Runs in: whoever syncs.  Pure.
 */
#include "sync/wires.h"

static int
by_wire(const void *a, const void *b)
{
	const struct wire_at *x = a, *y = b;
	int order = strcmp(x->wire, y->wire);

	return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

struct wires
wires_of(struct arena *arena, const char *const *first, size_t size, size_t n)
{
	struct wires wires = { .n = n };
	size_t i;

	wires.sorted = ARENA_ARRAY(arena, struct wire_at, n + 1);
	for (i = 0; i < n; i++) {
		wires.sorted[i].wire = *(const char *const *)(const void *)(
		    (const char *)first + i * size);
		wires.sorted[i].at = i;
	}
	qsort(wires.sorted, n, sizeof(wires.sorted[0]), by_wire);
	return wires;
}

size_t
wires_find(const struct wires *wires, const char *wire)
{
	size_t from = 0, to = wires->n, at;

	while (from < to) {
		at = from + (to - from) / 2;
		if (strcmp(wires->sorted[at].wire, wire) < 0)
			from = at + 1;
		else
			to = at;
	}
	return from < wires->n &&
	    strcmp(wires->sorted[from].wire, wire) == 0 ?
	    wires->sorted[from].at : WIRES_NONE;
}
