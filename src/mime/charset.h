/*
 * charset.h - bytes of any charset to UTF-8.
 */
#ifndef MIME_CHARSET_H
#define MIME_CHARSET_H

#include "base/arena.h"

#include <stdbool.h>

/*
 * Never fails: a label that is unknown, absent or a lie is replaced by a
 * guess (UTF-8 when the bytes are valid, else windows-1252).  The result is
 * valid UTF-8 without NUL; it is `bytes` itself when nothing had to change.
 * `label` may be NULL and need not be terminated.
 */
const char *charset_decode(struct arena *arena, const char *label,
    size_t label_len, const char *bytes, size_t len, size_t *len_r);

/* Whether the label says more than "bytes of some kind". */
bool charset_is_known(const char *label, size_t len);

/* The charset an HTML text names itself; NULL when it does not. */
const char *charset_in_html(const char *html, size_t len, size_t *len_r);

/* A byte of windows-1252 as a code point. */
unsigned charset_1252(unsigned byte);

/* Loads all converters of libc, so that children inherit them. */
void charset_init(void);

#endif
