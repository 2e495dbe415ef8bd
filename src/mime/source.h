/*
 * source.h - the raw bytes of a message, in memory or in a file, and its
 * lines.
 */
#ifndef MIME_SOURCE_H
#define MIME_SOURCE_H

#include "base/banned.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef SOURCE_CHUNK /* smaller for the fuzzer, to get at its borders */
#define SOURCE_CHUNK ((size_t)32768)
#endif

struct source {
	const unsigned char *mem; /* NULL: read from fd */
	int fd;
	uint64_t size;
	bool is_bare_cr; /* fd: CR is the line end and is read as LF */
	bool has_failed; /* a read failed; what was left counts as absent */
};

/* Bytes read into `out`; 0 at the end. */
size_t source_fetch(struct source *src, uint64_t offset, void *out, size_t len);

/*
 * Some bytes of [offset, end), at least one unless the range is empty; in
 * `scratch` (SOURCE_CHUNK bytes) when they come from a file.
 */
const unsigned char *source_chunk(struct source *src, uint64_t offset,
    uint64_t end, unsigned char *scratch, size_t *len_r);

/* A line with its end, or a piece of one that is longer than a chunk. */
struct line {
	const unsigned char *p;
	size_t len;
	uint64_t offset;
	bool is_start, is_end;
};

struct lines {
	struct source *src;
	uint64_t offset, end; /* of what is not yet in the window */
	const unsigned char *p;
	size_t left; /* in the window */
	bool in_line;
	unsigned char *scratch; /* SOURCE_CHUNK bytes; NULL for memory */
};

/* Reads [offset, end).  The caller gives the scratch for a file. */
void lines_init(struct lines *l, struct source *src, uint64_t offset,
    uint64_t end, unsigned char *scratch);
bool lines_next(struct lines *l, struct line *line);

/* Nothing but blanks and the line end. */
bool line_is_blank(const struct line *line);

#endif
