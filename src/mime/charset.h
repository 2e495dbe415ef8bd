/*
 * charset.h - bytes of any charset to UTF-8.
 */
#ifndef MIME_CHARSET_H
#define MIME_CHARSET_H

#include "base/arena.h"
#include "mime/codec.h"

/*
 * What a label means in mail; CHARSET_GUESSED when it is absent, unknown or
 * says no more than "bytes of some kind".  It need not be terminated.
 */
enum charset charset_find(const char *label, size_t len);
bool charset_is_known(const char *label, size_t len);

/*
 * Never fails: a charset that is a lie is replaced by a guess.  The result is
 * valid UTF-8 without NUL; it is `bytes` itself when nothing had to change.
 */
const char *charset_convert(struct arena *arena, enum charset charset,
    const char *bytes, size_t len, size_t *len_r);
const char *charset_decode(struct arena *arena, const char *label,
    size_t label_len, const char *bytes, size_t len, size_t *len_r);

/*
 * Of bytes in a header that no encoded word protects: the charset of the text
 * (`hint`) if they can be that, else what they look like.
 */
enum charset charset_of_raw(const char *bytes, size_t len, enum charset hint);

/* The charset an HTML text names itself; NULL when it does not. */
const char *charset_in_html(const char *html, size_t len, size_t *len_r);

#endif
