/*
 * leaf.c - the bytes of a leaf, decoded.
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * Nothing is decoded that is not wanted, and nothing of any size is held: who
 * counts gets a number, who reads gets pieces.
 */
#include "config.h"

#include "mime/leaf.h"

#include "base/xmem.h"

#define STEP SOURCE_CHUNK /* encoded bytes at a time */

bool
leaf_is_octets(const struct leaf *leaf, const char *suffix)
{
	size_t len = leaf->name == NULL ? 0 : strlen(leaf->name);
	size_t n = strlen(suffix);

	return strcmp(leaf->type, "application/octet-stream") == 0 &&
	    len >= n && strcasecmp(leaf->name + len - n, suffix) == 0;
}

enum encoding
leaf_encoding(const struct leaf *leaf)
{
	const struct field *f = &leaf->headers.fields[HEADER_ENCODING];

	if (leaf->is_raw || f->value == NULL)
		return ENCODING_NONE;
	return encoding_parse(f->value, f->len);
}

/* Decodes a little more; false: it was decoded to its end before. */
static bool
pieces_step(struct pieces *p)
{
	const unsigned char *bytes;
	uint64_t end = p->leaf->end;
	size_t n;

	if (p->at >= end)
		return false;
	if (end - p->at > STEP)
		end = p->at + STEP;
	bytes = source_chunk(p->leaf->src, p->at, end, p->scratch, &n);
	decode_feed(&p->decoder, bytes, n);
	p->at = n == 0 ? p->leaf->end : p->at + n;
	if (p->at >= p->leaf->end)
		decode_end(&p->decoder);
	return true;
}

void
pieces_init(struct pieces *p, const struct leaf *leaf)
{
	*p = (struct pieces){ .leaf = leaf, .at = leaf->start };
	p->sink = (struct sink){ .kept = BUF_INIT, .max = SIZE_MAX };
	if (leaf->src->mem == NULL)
		p->scratch = xmalloc(SOURCE_CHUNK);
	decode_init(&p->decoder, leaf_encoding(leaf), &p->sink);
}

void
pieces_release(struct pieces *p)
{
	buf_release(&p->sink.kept);
	free(p->scratch);
}

bool
pieces_are_over(const struct pieces *p)
{
	return p->at >= p->leaf->end && p->used == p->sink.kept.len;
}

/*
 * Behind the last line end, else behind the last tag or blank.  A line end of
 * UTF-16 or UTF-32 is cut behind its last byte: LF NUL, NUL LF.
 */
static size_t
safe_cut(const char *p, size_t len)
{
	static const char ends[] = { '\n', '>', ' ' };
	const char *at;
	size_t i, cut;

	for (i = 0; i < sizeof(ends); i++) {
		if ((at = memrchr(p, ends[i], len)) == NULL)
			continue;
		cut = (size_t)(at + 1 - p);
		while (cut < len && cut % 4 != 0 && p[cut] == '\0')
			cut++;
		return cut;
	}
	return len / 4 * 4;
}

bool
pieces_next(struct pieces *p, size_t size, const char **bytes_r, size_t *len_r)
{
	struct buf *kept = &p->sink.kept;

	if (p->used > 0) {
		memmove(kept->data, kept->data + p->used, kept->len - p->used);
		kept->len -= p->used;
		p->used = 0;
	}
	while (kept->len < size && pieces_step(p))
		;
	if (kept->len == 0)
		return false;
	*bytes_r = kept->data;
	*len_r = p->used = p->at >= p->leaf->end ? kept->len
	    : safe_cut(kept->data, kept->len);
	return true;
}

uint64_t
leaf_size(const struct leaf *leaf)
{
	struct pieces p;
	uint64_t total;

	if (leaf_encoding(leaf) == ENCODING_NONE)
		return leaf->end - leaf->start;
	pieces_init(&p, leaf);
	p.sink.max = 0;
	while (pieces_step(&p))
		;
	total = p.sink.total;
	pieces_release(&p);
	return total;
}

const char *
leaf_bytes(struct arena *arena, const struct leaf *leaf, size_t max,
    size_t *len_r)
{
	uint64_t size = leaf->end - leaf->start;
	struct pieces p;
	char *copy;

	if (leaf->src->mem != NULL && leaf_encoding(leaf) == ENCODING_NONE) {
		*len_r = size < max ? (size_t)size : max;
		return (const char *)leaf->src->mem + leaf->start;
	}
	pieces_init(&p, leaf);
	p.sink.max = max;
	while (p.sink.kept.len < max && pieces_step(&p))
		;
	*len_r = p.sink.kept.len;
	copy = arena_strndup(arena, buf_str(&p.sink.kept), p.sink.kept.len);
	pieces_release(&p);
	return copy;
}

const char *
leaf_raw(struct arena *arena, const struct leaf *leaf, size_t max,
    size_t *len_r)
{
	size_t len = leaf->end - leaf->start < max
	    ? (size_t)(leaf->end - leaf->start) : max;
	char *copy;

	*len_r = len;
	if (leaf->src->mem != NULL)
		return (const char *)leaf->src->mem + leaf->start;
	copy = arena_alloc(arena, len + 1);
	*len_r = source_fetch(leaf->src, leaf->start, copy, len);
	return copy;
}
