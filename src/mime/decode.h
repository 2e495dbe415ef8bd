/*
 * decode.h - content transfer encodings, piece by piece.
 */
#ifndef MIME_DECODE_H
#define MIME_DECODE_H

#include "base/buf.h"

#include <stdbool.h>

enum encoding { ENCODING_NONE, ENCODING_BASE64, ENCODING_QP, ENCODING_UU };

/* Unknown ones count as none. */
enum encoding encoding_parse(const char *value, size_t len);

/* Where decoded bytes go: counted, and kept up to `max`. */
struct sink {
	uint64_t total;
	struct buf kept;
	size_t max;
};

struct decoder_state {
	enum encoding encoding;
	struct sink *sink;
	/* base64 */
	uint32_t bits;
	unsigned n_bits;
	int stage;
	/* of a line that may be base64, uuencoded, or end in blanks or '=' */
	unsigned char line[160];
	size_t line_len;
	bool is_done;
};

void decode_init(struct decoder_state *d, enum encoding encoding,
    struct sink *sink);
void decode_feed(struct decoder_state *d, const unsigned char *p, size_t len);
/* What was held back at the end of the input. */
void decode_end(struct decoder_state *d);

/* The text of one encoded word: junk is skipped, padding optional. */
void decode_base64_word(struct buf *out, const char *p, size_t len);

/* A letter of its alphabet. */
bool decode_is_base64(unsigned char c);

/* Of one hexadecimal digit, and of two of them; -1: not of that kind. */
int hex_digit(unsigned char c);
int hex_pair(const void *p);

/* One uuencoded line without its end into `out` (45 bytes at most); -1 when
 * it is none. */
int decode_uu_line(unsigned char *out, const unsigned char *p, size_t len);

#endif
