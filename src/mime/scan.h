/*
 * scan.h - is this body harmless for gmime?
 */
#ifndef MIME_SCAN_H
#define MIME_SCAN_H

#include "mime/mime.h"
#include "mime/view.h"

/*
 * Reads the body [view->begin, view->end) of a multipart once and counts what
 * gmime does not limit: parts, the bytes and lines of their headers, and what
 * it keeps of the text around parts.  The view is narrowed to what gmime may
 * see: from the first delimiter behind the last one, or to where a limit is
 * reached; empty when there is no delimiter.  Its stitches live in `arena`.
 * NULL: within the limits; else the reason, static.
 */
const char *scan_body(struct arena *arena, struct view *view,
    const char *boundary, const struct mime_limits *limits);

#endif
