/*
 * encoded.h - header values to what a person reads (RFC 2047 and worse).
 */
#ifndef MIME_ENCODED_H
#define MIME_ENCODED_H

#include "base/arena.h"

/*
 * One line of clean UTF-8 out of an unfolded value: encoded words decoded
 * wherever they stand, raw 8-bit as it looks where it is no UTF-8, control
 * characters dropped, tabs to blanks.
 */
const char *encoded_text(struct arena *arena, const char *value, size_t len);

#endif
