/*
 * stream.h - what gmime reads: a made-up header, then the body of a source.
 */
#ifndef MIME_STREAM_H
#define MIME_STREAM_H

#include "mime/source.h"

#include <gmime/gmime.h>

/*
 * `head` and `src` must outlive the stream and its substreams.  Positions
 * below head_len are in the head; position p above it is byte
 * p - head_len + body of the source, so a part is found again by numbers.
 */
GMimeStream *stream_new(struct source *src, uint64_t body, uint64_t end,
    const char *head, size_t head_len);

/* Where in the source a substream lies; -1: not one of ours. */
int stream_range(GMimeStream *stream, uint64_t *start_r, uint64_t *end_r);

#endif
