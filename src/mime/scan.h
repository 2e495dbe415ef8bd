/*
 * scan.h - is this body harmless for gmime?
 */
#ifndef MIME_SCAN_H
#define MIME_SCAN_H

#include "mime/mime.h"
#include "mime/source.h"

/*
 * Reads the body [offset, end) of a multipart once and counts what gmime does
 * not limit: parts, the bytes and lines of their headers, and what it keeps of
 * the text around parts.  NULL: within the limits; else the reason, static.
 * [*begin_r, *end_r) goes from the first delimiter behind the last one; empty
 * when there is none.
 */
const char *scan_body(struct source *src, uint64_t offset, uint64_t end,
    const char *boundary, const struct mime_limits *limits,
    uint64_t *begin_r, uint64_t *end_r);

#endif
