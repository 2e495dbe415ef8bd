/*
 * text.h - foreign bytes made fit for a text column or a log line.
 *
 * PostgreSQL takes no NUL and no invalid UTF-8 in text; terminals and logs
 * want no control characters.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Length in bytes of the UTF-8 character at `p` (1..4), or 0 when the bytes
 * are no valid character (RFC 3629: no surrogates, no overlong forms).
 */
unsigned text_utf8_char(const unsigned char *p, size_t len);

/* Code point of a valid character of `n` bytes; and its bytes (1..4). */
uint32_t text_code(const unsigned char *p, unsigned n);
unsigned text_encode(char out[4], uint32_t code);

bool text_is_utf8(const char *p, size_t len);

/*
 * A copy that is valid UTF-8 (each bad byte becomes U+FFFD) without NUL.
 * `len_r` may be NULL.
 */
char *text_clean(struct arena *arena, const char *p, size_t len, size_t *len_r);

/*
 * One line into a fixed buffer: as text_clean, control characters and line
 * ends become blanks, cut at a character border.  Always terminated.
 */
void text_clean_line(char *out, size_t size, const char *p, size_t len);

/* Bytes of `p` up to `max` that do not cut a UTF-8 character. */
size_t text_cut(const char *p, size_t len, size_t max);

#endif
