/*
 * attachment.h - names of attachments.
 */
#ifndef MIME_ATTACHMENT_H
#define MIME_ATTACHMENT_H

#include "base/arena.h"
#include "mime/header.h"

/* The name a part gives itself, fit to be shown; NULL: none. */
const char *attachment_name(struct arena *arena, const struct field *type,
    const struct field *disposition);

/* Last piece of a path, without characters that lie about it. */
const char *attachment_clean_name(struct arena *arena, const char *name);

#endif
