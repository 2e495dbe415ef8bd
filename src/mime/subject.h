/*
 * subject.h - what a conversation is called (RFC 5256 2.1 and the world).
 */
#ifndef MIME_SUBJECT_H
#define MIME_SUBJECT_H

#include "base/arena.h"

#include <stdbool.h>

/*
 * Without reply and forward prefixes of any language, list tags and "(fwd)";
 * runs of blanks are one.  *is_reply_r: a reply prefix was there.
 */
const char *subject_base(struct arena *arena, const char *subject,
    bool *is_reply_r);

#endif
