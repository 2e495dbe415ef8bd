/*
 * ingest_private.h - one folder's download, for the two files of ingest.
 */
#ifndef SYNC_INGEST_PRIVATE_H
#define SYNC_INGEST_PRIVATE_H

#include "base/buf.h"
#include "sync/ingest.h"

/* A batch, and the cursor that is true once it is stored. */
struct load {
	struct batch *batch;
	uint32_t uid_from, uid_to; /* of it; 0 for none */
	bool has_cursor;
	struct cursor cursor;
};

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

	/* See ingest_commit.c. */
	struct load loads[2];
	struct load *filling, *queued; /* one each; the latter may be empty */
	bool has_queued;
	int64_t first_added_mono_msecs; /* to the one that fills */
	bool is_in_flight;
	uint32_t flight_from, flight_to;
	struct arena *result;

	/* the run */
	const struct place *wanted;
	const uint32_t *uids; /* theirs */
	bool *has_come;
	bool *is_known_large; /* above max_bytes, whatever was said */
	size_t n;
	size_t n_old; /* below the cursor: counted by it already */
	size_t low; /* all before it have come or will not */
	const struct cursor *base;

	struct err failure; /* of a callback; ERR_NONE: none */
};

/* Where the cursor is when everything added so far is stored; NULL: stays. */
const struct cursor *ingest_cursor_now(const struct ingest *in,
    struct cursor *cursor);
/* Closes the load that fills and sends it, or queues it behind the one in
 * flight. */
int ingest_commit(struct ingest *in, const struct cursor *cursor,
    struct err *err);
int ingest_commit_now(struct ingest *in, struct err *err);
int ingest_commit_when_full(struct ingest *in, struct err *err);
/* Sends the queued load if its time has come; never waits. */
int ingest_push(struct ingest *in, struct err *err);

void ingest_count_attempt(struct ingest *in, struct risk *risk,
    const char *how);

#endif
