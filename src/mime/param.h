/*
 * param.h - Content-Type and Content-Disposition with their parameters.
 */
#ifndef MIME_PARAM_H
#define MIME_PARAM_H

#include "base/arena.h"
#include "mime/codec.h"
#include "mime/header.h"

#include <stdbool.h>

/*
 * "type/subtype" in lower case, text/plain when the value makes no sense;
 * for a disposition the one word, "" when absent.
 */
const char *param_type(struct arena *arena, const struct field *field);
const char *param_word(struct arena *arena, const struct field *field);

/*
 * A parameter, put together from its RFC 2231 pieces, as bytes; terminated.
 * NULL: absent.  *charset_r: what RFC 2231 says of the bytes, or NULL.
 */
const char *parameter_bytes(struct arena *arena, const struct field *field,
    const char *name, size_t *len_r, const char **charset_r);

/* The same as clean UTF-8. */
const char *parameter_text(struct arena *arena, const struct field *field,
    const char *name);

/* What the parameter "charset" means. */
enum charset param_charset(struct arena *arena, const struct field *field);

#endif
