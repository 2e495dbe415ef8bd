/*
 * blob.c - appends raw messages to segments, one fdatasync a batch.
 *
 * Runs in: children.  Blocks on the disk.
 *
 * A small pool of open segments is shared by all writers of all workers on the
 * same directory; flock says whose turn it is, and the kernel lets go of it
 * when a writer dies, wherever that was.  Whoever holds a segment appends at
 * the end as it finds it: a torn record of a predecessor is dead bytes before
 * it, and no repair is ever needed.
 *
 * Compression is off unless asked for: tests/unit/bench_blob.c took 17 us of
 * CPU a message raw and 49 us with zstd 1 (50,000 messages of 6.6 KB, batches
 * of 100, ratio 2.5 on made-up text, 2 busy cores).
 */
#include "config.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/xmem.h"
#include "blob/blob_private.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zstd.h>

/* Segments that are written to at the same time. */
#define POOL 16
/* Segments fill up one after another: open ones are among the newest. */
#define LOOK_BACK (4 * POOL)
/* When all are busy; a stopped writer must not hold up the others for ever. */
#define PATIENCE_MSECS 5000
/* The disk may begin with this much, while more of the batch comes. */
#define WRITE_BEHIND_BYTES (256 * 1024)

struct blob_writer {
	struct blob_dir dir;
	struct uuid id; /* of the directory */
	int segments_fd;
	int fd; /* of a segment; -1: none.  Kept between batches. */
	int32_t segment;
	bool is_held; /* fd is locked */
	bool is_dirty;
	uint64_t size;	/* where the next record goes */
	uint64_t begin; /* where this batch began */
	uint64_t begun; /* the disk has been told of what is before */
	int level;	/* of zstd; 0: raw */
	ZSTD_CCtx *zstd;
	struct buf packed;
};

int
blob_writer_new(struct blob_writer **w_r, const char *dir, struct err *err)
{
	struct blob_writer *w = xcalloc(1, sizeof(*w));

	w->fd = w->segments_fd = -1;
	if (blob_dir_open(&w->dir, dir, err) == -1) {
		free(w);
		return -1;
	}
	if (blob_dir_id(&w->dir, &w->id, err) == -1) {
		blob_writer_free(&w);
		return -1;
	}
	w->segments_fd = openat(w->dir.fd, SEGMENTS,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->segments_fd == -1) {
		blob_fail(&w->dir, SEGMENTS, "not opened", err);
		blob_writer_free(&w);
		return -1;
	}
	*w_r = w;
	return 0;
}

const struct uuid *
blob_writer_id(const struct blob_writer *w)
{
	return &w->id;
}

static void
close_segment(struct blob_writer *w)
{
	if (w->fd != -1)
		close(w->fd); /* unlocks */
	w->fd = -1;
	w->is_held = w->is_dirty = false;
}

void
blob_writer_free(struct blob_writer **w)
{
	if (*w == NULL)
		return;
	close_segment(*w);
	if ((*w)->segments_fd != -1)
		close((*w)->segments_fd);
	blob_dir_close(&(*w)->dir);
	ZSTD_freeCCtx((*w)->zstd);
	buf_release(&(*w)->packed);
	free(*w);
	*w = NULL;
}

void
blob_writer_compress(struct blob_writer *w, int level)
{
	w->level = level;
}

void
blob_rest(struct blob_writer *w)
{
	close_segment(w);
}

struct blob_dir *
blob_writer_dir(struct blob_writer *w)
{
	return &w->dir;
}

/* --- whose segment ---------------------------------------------------------------- */

/* Locks the open segment unless it is busy, full or gone. */
static bool
try_hold(struct blob_writer *w)
{
	struct stat st;

	if (flock(w->fd, LOCK_EX | LOCK_NB) == -1)
		return false;
	if (fstat(w->fd, &st) == -1 || st.st_nlink == 0 ||
	    (uint64_t)st.st_size >= SEGMENT_BYTES) {
		flock(w->fd, LOCK_UN);
		return false;
	}
	w->is_held = true;
	w->is_dirty = false;
	w->size = w->begin = w->begun = (uint64_t)st.st_size;
	return true;
}

static bool
open_and_try(struct blob_writer *w, int32_t number, bool *is_open_r)
{
	char name[BLOB_NAME_SIZE];
	struct stat st;

	*is_open_r = false;
	blob_segment_name(name, number);
	if (fstatat(w->dir.fd, name, &st, 0) == -1 ||
	    (uint64_t)st.st_size >= SEGMENT_BYTES)
		return false;
	*is_open_r = true;
	w->fd = openat(w->dir.fd, name, O_RDWR | O_APPEND | O_CLOEXEC);
	if (w->fd == -1)
		return false;
	w->segment = number;
	if (try_hold(w))
		return true;
	close_segment(w);
	return false;
}

/* 1: holds one.  0: all that are open are busy; how many, and the newest
 * number.  Writers begin at different ones. */
static int
find_free(struct blob_writer *w, unsigned *n_open_r, int32_t *newest_r,
    struct err *err)
{
	int32_t *numbers;
	size_t n, first, i, looked;
	bool is_open, is_held = false;

	if (blob_segments_list(&w->dir, &numbers, &n, err) == -1)
		return -1;
	*n_open_r = 0;
	*newest_r = n > 0 ? numbers[n - 1] : 0;
	first = n > LOOK_BACK ? n - LOOK_BACK : 0;
	looked = n - first;
	if (looked > 0) {
		size_t shift = arc4random_uniform((uint32_t)looked);

		for (i = 0; i < looked && !is_held; i++) {
			is_held = open_and_try(w,
			    numbers[first + (i + shift) % looked], &is_open);
			*n_open_r += is_open;
		}
	}
	free(numbers);
	return is_held;
}

static int
create_segment(struct blob_writer *w, int32_t number, struct err *err)
{
	char name[BLOB_NAME_SIZE];

	blob_segment_name(name, number);
	w->fd = openat(w->dir.fd, name,
	    O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (w->fd == -1 && errno == EEXIST)
		return 0; /* another was faster: look again */
	if (w->fd == -1)
		return blob_fail(&w->dir, name, "not created", err);
	w->segment = number;
	if (fsync(w->segments_fd) == -1) {
		blob_fail(&w->dir, SEGMENTS, "not synced", err);
		close_segment(w);
		return -1;
	}
	if (try_hold(w))
		return 1;
	close_segment(w);
	return 0;
}

/* One look at all segments.  The directory's lock keeps a crowd of writers
 * from creating one each; who waited too long does without. */
static int
find_or_create(struct blob_writer *w, bool is_impatient, struct err *err)
{
	unsigned n_open;
	int32_t newest;
	int held = find_free(w, &n_open, &newest, err);
	bool is_locked;

	if (held != 0 || (n_open >= POOL && !is_impatient))
		return held;
	is_locked = flock(w->segments_fd, LOCK_EX | LOCK_NB) == 0;
	if (!is_locked && !is_impatient)
		return 0;
	held = find_free(w, &n_open, &newest, err);
	if (held == 0 && (n_open < POOL || is_impatient))
		held = create_segment(w, newest + 1, err);
	if (is_locked)
		flock(w->segments_fd, LOCK_UN);
	return held;
}

static int
hold_segment(struct blob_writer *w, struct err *err)
{
	int64_t begin = clock_mono_msecs();
	struct timespec pause = { .tv_nsec = 0 };
	int held;

	if (w->is_held || (w->fd != -1 && try_hold(w)))
		return 0;
	close_segment(w);
	while ((held = find_or_create(w,
		    clock_mono_msecs() - begin > PATIENCE_MSECS, err)) == 0) {
		pause.tv_nsec = 1000000 + arc4random_uniform(9000000);
		nanosleep(&pause, NULL);
	}
	return held == 1 ? 0 : -1;
}

/* --- putting ------------------------------------------------------------------------ */

/* All or nothing, as far as the disk lets us. */
static int
blob_append_all(
    struct blob_writer *w, struct iovec *iov, int n, struct err *err)
{
	uint64_t len = iov[0].iov_len + iov[1].iov_len, done = 0;
	char name[BLOB_NAME_SIZE];
	struct stat st;
	ssize_t written;

	while (done < len) {
		written = writev(w->fd, iov, n);
		if (written == -1 && errno == EINTR)
			continue;
		if (written == -1)
			break;
		done += (uint64_t)written;
		while (n > 0 && (size_t)written >= iov->iov_len) {
			written -= (ssize_t)iov->iov_len;
			iov++;
			n--;
		}
		if (n > 0) {
			iov->iov_base = (char *)iov->iov_base + written;
			iov->iov_len -= (size_t)written;
		}
	}
	w->is_dirty = true;
	if (done == len) {
		w->size += len;
		return 0;
	}
	blob_fail(&w->dir, blob_segment_name(name, w->segment), "not written",
	    err);
	/* if that fails too the tail is dead bytes, and comes before us */
	if (ftruncate(w->fd, (off_t)w->size) == -1 && fstat(w->fd, &st) == 0)
		w->size = (uint64_t)st.st_size;
	return -1;
}

/* Only a hint: flushing waits less for what is on its way already. */
static void
write_behind(struct blob_writer *w)
{
	if (w->size - w->begun < WRITE_BEHIND_BYTES)
		return;
	(void)sync_file_range(w->fd, (off_t)w->begun,
	    (off_t)(w->size - w->begun), SYNC_FILE_RANGE_WRITE);
	w->begun = w->size;
}

/* Replaces *bytes by its compressed form if that pays. */
static enum blob_codec
blob_pack(struct blob_writer *w, const void **bytes, size_t *len)
{
	size_t packed;

	if (w->level == 0 || *len == 0)
		return BLOB_RAW;
	if (w->zstd == NULL && (w->zstd = ZSTD_createCCtx()) == NULL)
		xmem_fail(0);
	buf_reset(&w->packed);
	packed = ZSTD_compressCCtx(w->zstd,
	    buf_reserve(&w->packed, ZSTD_compressBound(*len)),
	    ZSTD_compressBound(*len), *bytes, *len, w->level);
	if (ZSTD_isError(packed) || packed > *len - *len / 10)
		return BLOB_RAW;
	*bytes = w->packed.data;
	*len = packed;
	return BLOB_ZSTD;
}

/* The segment became full in mid-batch: what it has of the batch is made
 * durable now, the rest goes elsewhere. */
static int
change_segment(struct blob_writer *w, struct err *err)
{
	if (blob_flush(w, err) == -1)
		return -1;
	close_segment(w);
	return hold_segment(w, err);
}

int
blob_append(struct blob_writer *w, const struct blob_ref *as,
    const void *stored, struct blob_ref *ref_r, struct err *err)
{
	struct blob_ref ref = *as;
	uint8_t head[RECORD_HEAD];
	struct iovec iov[2];

	if (hold_segment(w, err) == -1 ||
	    (w->size >= SEGMENT_BYTES && change_segment(w, err) == -1))
		return -1;
	ref.segment = w->segment;
	ref.offset = (int64_t)w->size;
	record_encode(head, &ref);
	iov[0] = (struct iovec){ head, sizeof(head) };
	iov[1] = (struct iovec){ (void *)(uintptr_t)stored, ref.stored };
	if (blob_append_all(w, iov, 2, err) == -1)
		return -1;
	write_behind(w);
	*ref_r = ref;
	return 0;
}

int
blob_put(struct blob_writer *w, const void *bytes, size_t len,
    struct blob_ref *ref_r, struct err *err)
{
	struct blob_ref ref = { .size = len };

	blob_digest(bytes, len, ref.digest);
	ref.codec = blob_pack(w, &bytes, &len);
	ref.stored = len;
	return blob_append(w, &ref, bytes, ref_r, err);
}

int
blob_flush(struct blob_writer *w, struct err *err)
{
	char name[BLOB_NAME_SIZE];

	if (w->is_held && w->is_dirty && fdatasync(w->fd) == -1) {
		blob_fail(&w->dir, blob_segment_name(name, w->segment),
		    "not synced", err);
		/* What the disk has of it is unknown: nobody shall build upon
		 * these pages, this writer goes elsewhere. */
		if (ftruncate(w->fd, (off_t)w->begin) == -1)
			log_warn(NULL, "%s/%s: not truncated: %s", w->dir.path,
			    name, strerror(errno));
		close_segment(w);
		return -1;
	}
	if (w->is_held)
		flock(w->fd, LOCK_UN);
	w->is_held = w->is_dirty = false;
	return 0;
}
