/*
 * flowed.h - text/plain; format=flowed (RFC 3676) to paragraphs.
 */
#ifndef MIME_FLOWED_H
#define MIME_FLOWED_H

#include "base/buf.h"

#include <stdbool.h>

/* `text` has LF line ends.  delsp: the blank at a soft break is not text. */
void flowed_to_text(struct buf *out, const char *text, size_t len, bool delsp);

#endif
