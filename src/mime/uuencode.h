/*
 * uuencode.h - files that stand uuencoded in a plain text.
 */
#ifndef MIME_UUENCODE_H
#define MIME_UUENCODE_H

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct uu_file {
	const char *name;
	uint64_t size;
	struct uu_file *next;
};

/*
 * Text without its files goes to `out`, up to `max` bytes there.  Text comes in
 * pieces with LF line ends, best of whole lines.
 */
struct uu {
	struct arena *arena;
	struct buf *out;
	size_t max;
	bool is_cut;	       /* there was more text */
	struct uu_file *files; /* the last one first */
	unsigned n_files;
	/* of the file that is being read */
	const char *name; /* NULL: none */
	size_t begin;	  /* of out, should it turn out to be text */
	uint64_t size;
	bool is_base64, was_empty, is_over;
};

void uuencode_feed(struct uu *u, const char *text, size_t len);
void uuencode_end(struct uu *u);

#endif
