/*
 * ingest_private.h - one folder's download, for the two files of ingest.
 */
#ifndef SYNC_INGEST_PRIVATE_H
#define SYNC_INGEST_PRIVATE_H

#include "base/buf.h"
#include "sync/ingest.h"

struct ingest {
	struct session *s;
	struct folder *folder;
	uint32_t parse_permit;
	size_t stream_bytes;
	size_t max_bytes; /* of larger messages only the header is stored */
	bool is_too_large; /* the message that is being fetched */

	/* the message that is arriving */
	struct buf raw;
	struct blob_stream *stream;
	struct arena *content; /* dies with the message */

	/* the batch */
	struct batch *batch;
	int64_t first_added_mono_msecs;
	uint32_t uid_from, uid_to; /* of it */
	bool is_in_flight;
	uint32_t flight_from, flight_to;
	struct arena *result;

	/* the run */
	const struct place *wanted;
	const uint32_t *uids; /* theirs */
	bool *has_come;
	size_t n;
	size_t n_old; /* below the cursor: counted by it already */
	size_t low; /* all before it have come or will not */
	const struct cursor *base;

	struct err failure; /* of a callback; ERR_NONE: none */
};

/* Where the cursor is when everything added so far is stored; NULL: stays. */
const struct cursor *ingest_cursor_now(const struct ingest *in,
    struct cursor *cursor);
/* Starts the batch's commit, after the one in flight. */
int ingest_commit(struct ingest *in, const struct cursor *cursor,
    struct err *err);
int ingest_commit_now(struct ingest *in, struct err *err);
int ingest_commit_when_full(struct ingest *in, struct err *err);

void ingest_count_attempt(struct ingest *in, const struct risk *risk,
    const char *how);

#endif
