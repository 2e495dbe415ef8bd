/*
 * report.h - which message a report is about.
 */
#ifndef MIME_REPORT_H
#define MIME_REPORT_H

#include "base/buf.h"
#include "mime/mime.h"
#include "mime/tree.h"

/*
 * The ids that the machine's parts of a DSN or MDN name, and the headers it
 * returns, join the references of `content`.  `text` is what people read of
 * it: all there is of some servers' reports.
 */
void report_read(struct arena *arena, const struct tree *tree,
    const struct headers *headers, const struct mime_limits *limits,
    struct content *content, const struct buf *text);

#endif
