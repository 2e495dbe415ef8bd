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
#ifndef BLOB_H
#define BLOB_H

#include "base/err.h"
#include "base/uuid.h"
#include "mail/message.h"

enum blob_codec { BLOB_RAW = 0, BLOB_ZSTD = 1 };

/* One writer: holds at most one segment (by flock) from put to flush. */
struct blob_writer;

/* The directory is there already and has its id (blob_store_make). */
int blob_writer_new(struct blob_writer **w_r, const char *dir,
    struct err *err);
/* To be compared with store_blob_id() before rows point to what was put. */
const struct uuid *blob_writer_id(const struct blob_writer *w);
void blob_writer_free(struct blob_writer **w);
/* zstd level for what is put from now on, where it saves more than a tenth;
 * 0, the preset, stores as is.  See blob.c for what it costs. */
void blob_writer_compress(struct blob_writer *w, int level);

/*
 * Appends; durable only after blob_flush.  Fills `ref_r`.  A failed put leaves
 * what was put before as it was.
 */
int blob_put(struct blob_writer *w, const void *bytes, size_t len,
    struct blob_ref *ref_r, struct err *err);
/* One fdatasync for everything put since the last flush; then the segment is
 * anybody's.  After an error nothing of the batch may be referred to. */
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
 * Reads a whole blob in pieces and checks its digest on the way, so that
 * damage may be found after bytes were handed out.  `on_bytes` returning -1
 * stops; err is its business then.  ERR_GONE when it is not there: the garbage
 * collection may have moved it, look at the row again.  ERR_STORAGE when it is
 * damaged.
 */
int blob_read(const char *dir, const struct blob_ref *ref,
    int (*on_bytes)(void *arg, const void *bytes, size_t len), void *arg,
    struct err *err);

/* --- whose it is (blob_id.c) --------------------------------------------------- */

struct store;

/* Makes an empty directory, or an existing one without id, the blob store
 * `id`: subdirectories and the file store-id.  Refuses one of another id. */
int blob_store_make(const char *dir, const struct uuid *id, struct err *err);
/*
 * mailherdctl init: makes the directory the store of this database, where
 * nothing speaks against it.  ERR_CONFIG: it is another database's, or this
 * database has blobs that are not in it (a file system that is not mounted).
 */
int blob_store_init(struct store *s, const char *dir, struct err *err);
/* Before work begins: is it there, and this database's?  ERR_CONFIG. */
int blob_store_check(struct store *s, const char *dir, struct err *err);

/* --- upkeep (mailherdctl blob) ------------------------------------------------ */

enum blob_state {
	BLOB_GOOD,
	BLOB_DAMAGED, /* a record whose content does not match its digest */
	BLOB_DEAD,    /* bytes of no record: the rest of a torn write */
};

struct blob_found {
	enum blob_state state;
	struct blob_ref ref; /* BLOB_DEAD: only segment and offset */
	uint64_t bytes;	     /* on disk, header included */
	const char *what;    /* what is wrong, "" when good */
};

/* Walks everything that is stored, segment by segment, then files of their
 * own, and checks each digest.  on_found returning -1 stops (err is its
 * business).  What is appended meanwhile may be missed. */
int blob_walk(const char *dir,
    int (*on_found)(void *arg, const struct blob_found *found), void *arg,
    struct err *err);

struct blob_gc_result {
	unsigned segments_seen, segments_removed, files_removed;
	uint64_t bytes_moved, bytes_freed;
	unsigned damaged; /* live records that could not be copied: kept */
	bool has_more;	  /* the time was up before all were looked at */
};
/*
 * Copies the live records out of segments with at least `min_dead_percent`
 * dead bytes and removes those segments; removes files of their own that no
 * row names (or never did) and what killed writers left in tmp.  Touches nothing that was
 * written less than `min_age_secs` ago: its row may not be committed yet.
 * May run beside everything else, and be killed at any time.
 */
#define BLOB_GC_MIN_AGE_SECS 3600
int blob_gc(struct store *store, const char *dir, unsigned min_dead_percent,
    int64_t min_age_secs, struct blob_gc_result *result_r, struct err *err);
/* The same for about `msecs`; a segment that was begun is finished. */
int blob_gc_for(struct store *store, const char *dir,
    unsigned min_dead_percent, int64_t min_age_secs, int64_t msecs,
    struct blob_gc_result *result_r, struct err *err);

#endif
