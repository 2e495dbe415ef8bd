/*
 * body.h - the text and the attachments of a message.
 */
#ifndef MIME_BODY_H
#define MIME_BODY_H

#include "mime/header.h"
#include "mime/mime.h"

/*
 * Fills text, extra, snippet and attachments of `content`, and references when
 * only the body of a report tells them.  *charset_r: that of the first text.
 * Returns NULL, or the static reason why some of it had to be left out.
 */
const char *body_read(struct arena *arena, struct source *src,
    const struct headers *headers, const struct mime_limits *limits,
    struct content *content, enum charset *charset_r);

#endif
