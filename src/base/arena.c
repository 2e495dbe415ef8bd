/*
 * arena.c - memory that dies with one unit of work.
 *
 * Runs in: every process.  Never blocks.
 *
 * Blocks double from 4 KB to 256 KB; a piece larger than a quarter block gets
 * a block of its own, so that a big message leaves nothing behind on reset.
 */
#include "base/arena.h"

#include "base/xmem.h"

#include <stdarg.h>
#include <stdint.h>

#define BLOCK_MIN ((size_t)4096)
#define BLOCK_MAX ((size_t)262144)

struct block {
	struct block *next;
	size_t size;
	size_t used;
	_Alignas(max_align_t) char data[];
};

struct arena {
	const char *name;
	struct block *current;
	struct block *big; /* one piece each */
	size_t next_size;
	size_t used;
};

static struct block *
block_new(size_t size)
{
	struct block *b = xmalloc(sizeof(*b) + size);

	b->next = NULL;
	b->size = size;
	b->used = 0;
	return b;
}

static void
blocks_free(struct block *b)
{
	struct block *next;

	for (; b != NULL; b = next) {
		next = b->next;
		free(b);
	}
}

struct arena *
arena_new(const char *name)
{
	struct arena *a = xcalloc(1, sizeof(*a));

	a->name = name;
	a->next_size = BLOCK_MIN;
	return a;
}

void
arena_free(struct arena **arena)
{
	if (*arena == NULL)
		return;
	blocks_free((*arena)->current);
	blocks_free((*arena)->big);
	free(*arena);
	*arena = NULL;
}

void
arena_reset(struct arena *arena)
{
	blocks_free(arena->big);
	arena->big = NULL;
	arena->used = 0;
	if (arena->current != NULL) {
		blocks_free(arena->current->next);
		arena->current->next = NULL;
		arena->current->used = 0;
	}
}

void
arena_empty(struct arena *arena)
{
	arena_reset(arena);
	blocks_free(arena->current);
	arena->current = NULL;
	arena->next_size = BLOCK_MIN;
}

void *
arena_alloc(struct arena *arena, size_t size)
{
	size_t align = _Alignof(max_align_t);
	struct block *b = arena->current;
	void *piece;

	if (size > SIZE_MAX / 2)
		xmem_fail(size);
	size = size == 0 ? align : (size + align - 1) / align * align;
	arena->used += size;
	if (size > BLOCK_MAX / 4) {
		b = block_new(size);
		b->next = arena->big;
		arena->big = b;
		return b->data;
	}
	if (b == NULL || b->size - b->used < size) {
		while (arena->next_size < size)
			arena->next_size *= 2;
		b = block_new(arena->next_size);
		b->next = arena->current;
		arena->current = b;
		if (arena->next_size < BLOCK_MAX)
			arena->next_size *= 2;
	}
	piece = b->data + b->used;
	b->used += size;
	return piece;
}

void *
arena_calloc(struct arena *arena, size_t count, size_t size)
{
	void *piece;

	if (size != 0 && count > SIZE_MAX / 2 / size)
		xmem_fail(SIZE_MAX);
	piece = arena_alloc(arena, count * size);
	memset(piece, 0, count * size);
	return piece;
}

char *
arena_strndup(struct arena *arena, const char *s, size_t len)
{
	char *copy = arena_alloc(arena, len + 1);

	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

char *
arena_strdup(struct arena *arena, const char *s)
{
	return arena_strndup(arena, s, strlen(s));
}

char *
arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list ap, again;
	char *out;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	out = arena_alloc(arena, (size_t)(len < 0 ? 0 : len) + 1);
	out[0] = '\0';
	vsnprintf(out, (size_t)(len < 0 ? 0 : len) + 1, fmt, again);
	va_end(again);
	return out;
}

size_t
arena_used(const struct arena *arena)
{
	return arena->used;
}
