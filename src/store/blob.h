/*
 * blob.h - raw messages on disk, content-addressed.
 *
 * Small messages go to append-only segments, one fdatasync a batch; messages
 * above the streaming limit get a file of their own, written as they arrive.
 * The row in PostgreSQL is the only proof that a blob exists: bytes without a
 * row are garbage, torn tails included, and need no repair before start.
 *
 * Order of a batch: blob_put... , blob_flush, then the transaction.
 *
 * Everything here may block on the disk.  Errors are ERR_STORAGE and name the
 * path and the cause.
 */
#ifndef STORE_BLOB_H
#define STORE_BLOB_H

#include "base/err.h"
#include "store/message.h"

enum blob_codec { BLOB_RAW = 0, BLOB_ZSTD = 1 };

/* One writer: holds at most one segment (by flock) from put to flush. */
struct blob_writer;

/* `dir` is created (0750) when missing. */
int blob_writer_new(struct blob_writer **w_r, const char *dir,
    struct err *err);
void blob_writer_free(struct blob_writer **w);

/* Appends; durable only after blob_flush.  Fills `ref_r`. */
int blob_put(struct blob_writer *w, const void *bytes, size_t len,
    struct blob_ref *ref_r, struct err *err);
/* One fdatasync for everything put since the last flush. */
int blob_flush(struct blob_writer *w, struct err *err);
/* Gives the segment back to other writers (before idling). */
void blob_rest(struct blob_writer *w);

/*
 * A message too large to hold.  blob_stream_fd() can be read (parsed) from
 * offset 0 at any time; blob_stream_finish makes it durable and fills ref_r;
 * abort removes it.  Both free the stream.
 */
struct blob_stream;
int blob_stream_new(struct blob_writer *w, struct blob_stream **s_r,
    struct err *err);
int blob_stream_add(struct blob_stream *s, const void *bytes, size_t len,
    struct err *err);
int blob_stream_fd(struct blob_stream *s);
uint64_t blob_stream_size(const struct blob_stream *s);
int blob_stream_finish(struct blob_stream **s, struct blob_ref *ref_r,
    struct err *err);
void blob_stream_abort(struct blob_stream **s);

/*
 * Reads a whole blob in pieces and checks its digest on the way:
 * `on_bytes` returning -1 stops.  ERR_GONE when it is not there, ERR_STORAGE
 * when it is damaged.
 */
int blob_read(const char *dir, const struct blob_ref *ref,
    int (*on_bytes)(void *arg, const void *bytes, size_t len), void *arg,
    struct err *err);

#endif
