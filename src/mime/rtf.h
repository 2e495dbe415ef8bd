/*
 * rtf.h - the text of compressed RTF, as Outlook keeps it (MS-OXRTFCP).
 */
#ifndef MIME_RTF_H
#define MIME_RTF_H

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>

/* Appends up to about `max` bytes of RTF; false: it is not compressed RTF. */
bool rtf_decompress(struct buf *out, const unsigned char *data, size_t len,
    size_t max);

/* Appends the text, clean UTF-8. */
void rtf_to_text(struct arena *arena, struct buf *out, const char *rtf,
    size_t len, size_t max);

#endif
