/*
 * mime.h - raw bytes of a message to a struct content.
 *
 * Whatever the bytes are, the result can be stored: these functions do not
 * fail.  A message over a limit comes back PARSE_PARTIAL (headers only) or
 * PARSE_UNPARSED with the reason.  Not proof against bugs in gmime: run in a
 * child, after the attempt was noted (proc/slots.h).  May use CPU for a while,
 * never blocks on anything but the file.
 */
#ifndef MIME_MIME_H
#define MIME_MIME_H

#include "base/arena.h"
#include "mail/message.h"

struct mime_limits {
	size_t header_bytes;	/* kept of a header; in a part's: 1 MB */
	size_t header_lines;	/* in a part's header: 5,000 */
	size_t address_bytes;	/* kept of one address header: 1 MB */
	size_t parts;		/* 10,000 */
	unsigned depth;		/* nesting of multiparts: 100 */
	size_t text_bytes;	/* text kept to show, and as much more for
				 * search: 1 MB */
	size_t wrapped_bytes;	/* read of what S/MIME, TNEF or an encoded
				 * attached message hold: 16 MB */
	size_t addresses;	/* kept per message: 10,000 */
};

extern const struct mime_limits mime_default_limits;

/* Once, before fork. */
void mime_init(void);

/* Everything in `content_r` lives in `arena`. */
void mime_parse(struct arena *arena, const void *raw, size_t len,
    const struct mime_limits *limits, struct content *content_r);

/* The same from a file of `size` bytes, never held in memory.  The fd stays
 * the caller's. */
void mime_parse_fd(struct arena *arena, int fd, uint64_t size,
    const struct mime_limits *limits, struct content *content_r);

/* A content for bytes that must not be parsed (quarantine). */
void mime_unparsed(struct arena *arena, const char *reason,
    struct content *content_r);

#endif
