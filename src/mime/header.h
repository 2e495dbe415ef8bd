/*
 * header.h - the header of a message or part, as far as mailherd reads it.
 */
#ifndef MIME_HEADER_H
#define MIME_HEADER_H

#include "base/arena.h"
#include "mime/codec.h"
#include "mime/source.h"

/* symbol, name in lower case */
#define HEADERS(X)                                    \
	X(HEADER_FROM, "from")                        \
	X(HEADER_TO, "to")                            \
	X(HEADER_CC, "cc")                            \
	X(HEADER_BCC, "bcc")                          \
	X(HEADER_REPLY_TO, "reply-to")                \
	X(HEADER_SENDER, "sender")                    \
	X(HEADER_SUBJECT, "subject")                  \
	X(HEADER_DATE, "date")                        \
	X(HEADER_RECEIVED, "received")                \
	X(HEADER_MESSAGE_ID, "message-id")            \
	X(HEADER_IN_REPLY_TO, "in-reply-to")          \
	X(HEADER_REFERENCES, "references")            \
	X(HEADER_CONTENT_TYPE, "content-type")        \
	X(HEADER_ENCODING, "content-transfer-encoding") \
	X(HEADER_DISPOSITION, "content-disposition")  \
	X(HEADER_CONTENT_ID, "content-id")            \
	X(HEADER_LOCATION, "content-location")        \
	X(HEADER_ORIGINAL_ID, "original-message-id")  \
	X(HEADER_X_ORIGINAL_ID, "x-original-message-id")

enum header_id {
#define X(symbol, name) symbol,
	HEADERS(X)
#undef X
	    HEADER_COUNT
};

/* Unfolded: without CR, LF and NUL, trimmed; any other byte may occur. */
struct field {
	const char *value; /* NULL: absent; terminated */
	size_t len;
};

struct headers {
	struct field fields[HEADER_COUNT]; /* the first of each name */
	uint64_t body;			   /* offset behind the header */
	uint64_t end;			   /* and behind the body */
	bool is_cut;			   /* values longer than asked for */
};

/*
 * What is not UTF-8 in values that people read becomes it: `hint` is the
 * charset of the text.  All of them are looked at together.
 */
void headers_to_utf8(struct arena *arena, struct headers *h,
    enum charset hint);

/* HEADER_COUNT when the name is none of ours. */
enum header_id header_id(const char *name, size_t len);

/* Length of the name when the line begins a field, else 0. */
size_t header_name_length(const unsigned char *line, size_t len);

/* The value of one field as above. */
struct field header_unfold(struct arena *arena, const char *raw, size_t len);

/*
 * Where the header of a message begins: behind empty lines, if two fields that
 * only headers have follow them; else at 0.
 */
uint64_t headers_begin(struct source *src);

/*
 * Reads [offset, end) up to the first line of the body.  Keeps at most
 * `max_address` bytes of one address header and `max_bytes` of all.
 */
void headers_scan(struct arena *arena, struct source *src, uint64_t offset,
    uint64_t end, size_t max_address, size_t max_bytes, struct headers *h);

#endif
