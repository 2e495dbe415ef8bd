/*
 * calendar.h - what a person reads of an invitation (RFC 5545).
 */
#ifndef MIME_CALENDAR_H
#define MIME_CALENDAR_H

#include "base/arena.h"
#include "base/buf.h"

/*
 * `bytes` without their folds, which may cut a character in two (3.1): so this
 * comes before the charset is looked at.
 */
const char *calendar_join(struct arena *arena, const char *bytes,
    size_t *len);

/*
 * Appends the values of SUMMARY, LOCATION, DESCRIPTION and COMMENT, a line
 * each or more, up to about `max` bytes.  `text` is clean UTF-8.
 */
void calendar_to_text(struct arena *arena, struct buf *out, const char *text,
    size_t len, size_t max);

#endif
