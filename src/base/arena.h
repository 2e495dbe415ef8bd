/*
 * arena.h - memory that dies with one unit of work (a pass, a batch).
 *
 * Ask which unit of work a piece of memory belongs to and take it from that
 * unit's arena; there is no free of a single piece.  Out of memory ends the
 * process: children are disposable.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/banned.h"

#include <stddef.h>

struct arena;

/* `name` must outlive the arena; it appears in diagnostics only. */
struct arena *arena_new(const char *name);
void arena_free(struct arena **arena);

/* Frees everything but one block: for reuse batch after batch. */
void arena_reset(struct arena *arena);
/* Frees every block: before idling. */
void arena_empty(struct arena *arena);

/* Not cleared; aligned for any type.  Never NULL. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_calloc(struct arena *arena, size_t count, size_t size);
char *arena_strdup(struct arena *arena, const char *s);
char *arena_strndup(struct arena *arena, const char *s, size_t len);
char *arena_printf(struct arena *arena, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Bytes handed out since the last reset. */
size_t arena_used(const struct arena *arena);

#define ARENA_NEW(arena, type) ((type *)arena_calloc((arena), 1, sizeof(type)))
#define ARENA_ARRAY(arena, type, n) \
	((type *)arena_calloc((arena), (n), sizeof(type)))

#endif
