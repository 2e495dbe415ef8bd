/*
 * alternative.h - do two forms of a text say the same?
 */
#ifndef MIME_ALTERNATIVE_H
#define MIME_ALTERNATIVE_H

#include "base/banned.h"

#include <stdbool.h>
#include <stddef.h>

/* A plain part shorter than this may be a stub; so much of HTML is compared. */
#define ALTERNATIVE_STUB ((size_t)2000)
#define ALTERNATIVE_SAMPLE ((size_t)400)

/* More of it need not be looked at. */
#define ALTERNATIVE_RAW ((size_t)32768)

/*
 * A first look at the other form as it stands in the message, encoded and with
 * its markup: whether it surely has the words of `text` and not much more.
 */
bool alternative_is_alike(const char *raw, size_t raw_len, const char *text,
    size_t len);

/* Whether `text` has most of the words of `sample`. */
bool alternative_is_same(const char *sample, size_t sample_len,
    const char *text, size_t len);

/* Whether `other`, which says something else, is what to show. */
bool alternative_is_better(const char *other, size_t other_len,
    const char *text, size_t len);

#endif
