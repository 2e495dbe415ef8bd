/*
 * view.h - what gmime reads: a made-up header, then the body of a source.
 */
#ifndef MIME_VIEW_H
#define MIME_VIEW_H

#include "mime/source.h"

#include <gmime/gmime.h>

/* Where a part lacks the empty line between its header and its body. */
struct stitch {
	uint64_t offset; /* of the source */
	uint32_t skip;	 /* bytes of the source that are left out there */
	bool is_line;	 /* a line end is shown there */
	int64_t shift;	 /* what all of them up to this one add */
};

/* What gmime is shown of [begin, end) of a source. */
struct view {
	struct source *src;
	uint64_t begin, end;
	const char *head; /* in front of it */
	size_t head_len;
	struct stitch *stitches; /* in order */
	size_t n_stitches;
};

/* `view` must outlive the stream and its substreams. */
GMimeStream *view_stream_new(const struct view *view);

/* Where in the source a substream lies; -1: not one of ours. */
int view_stream_range(GMimeStream *stream, uint64_t *start_r, uint64_t *end_r);

#endif
