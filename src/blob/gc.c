/*
 * gc.c - gives back the room of blobs that no row names.
 *
 * Runs in: mailherdctl, clerk.  Blocks on disk and database.
 *
 * A segment that is mostly dead is emptied: copies are made durable, rows are
 * pointed at them, and only a segment that no row names is removed.  Killed at
 * any point, the worst that is left is a copy without a row: dead bytes.
 *
 * Bytes become live when a row is committed, some time after they were
 * written.  Hence nothing young is touched, the newest segment never (its
 * number must not be given again), and the rows are looked at once more before
 * a segment goes.  What was committed may also be undone, by a failover: a
 * segment that was emptied goes in a later run, when the rows that left it are
 * safe elsewhere.
 */
#include "config.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/xmem.h"
#include "blob/blob_private.h"
#include "store/store.h"

#include <bsd/stdlib.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A batch of copies: whichever comes first. */
#define BATCH_BLOBS 200
#define BATCH_BYTES (8 << 20)
#define FILES_AT_ONCE 10000
#define ORPHANS_AT_ONCE 1000

struct gc {
	struct store *store;
	struct blob_dir dir;
	struct blob_writer *writer;
	int64_t min_age_secs;
	int64_t youngest_secs; /* mtime of what may be touched */
	unsigned min_dead_percent;
	int64_t deadline_mono_msecs;
	struct blob_gc_result *result;
};

struct refs {
	struct blob_ref *list;
	size_t n, cap;
};

static int
note_ref(void *arg, const struct blob_ref *ref)
{
	struct refs *refs = arg;

	GROW(refs->list, refs->n, refs->cap);
	refs->list[refs->n++] = *ref;
	return 0;
}

static int
blob_gc_ignore_bytes(void *arg, const void *bytes, size_t len)
{
	(void)arg;
	(void)bytes;
	(void)len;
	return 0;
}

/* --- one segment ---------------------------------------------------------------- */

/* 1: copied; 0: damaged, it stays. */
static int
copy_one(struct gc *gc, int fd, const struct blob_ref *from,
    struct blob_ref *to_r, struct err *err)
{
	uint64_t content = (uint64_t)from->offset + RECORD_HEAD;
	struct err damage = ERR_INIT;
	struct buf stored = BUF_INIT;
	int result;

	if (blob_read_at(
		fd, content, from, blob_gc_ignore_bytes, NULL, &damage) == -1 ||
	    pread(fd, buf_reserve(&stored, from->stored), from->stored,
		(off_t)content) != (ssize_t)from->stored) {
		log_error(NULL, "segment %d at %lld: %s", (int)from->segment,
		    (long long)from->offset, damage.text);
		gc->result->damaged++;
		result = 0;
	} else
		result = blob_append(gc->writer, from, stored.data, to_r,
		    err) == -1 ? -1 : 1;
	buf_release(&stored);
	return result;
}

/* Rows follow once the copies are durable. */
static int
move_rows(struct gc *gc, const struct blob_ref *from,
    const struct blob_ref *to, size_t n, struct err *err)
{
	bool has_moved;
	size_t i;

	if (blob_flush(gc->writer, err) == -1)
		return -1;
	for (i = 0; i < n; i++) {
		if (store_blob_move(gc->store, &from[i], &to[i], &has_moved,
			err) == -1)
			return -1;
		if (has_moved)
			gc->result->bytes_moved += to[i].stored;
	}
	return 0;
}

static int
copy_live(struct gc *gc, int fd, const struct refs *live, struct err *err)
{
	struct blob_ref from[BATCH_BLOBS], to[BATCH_BLOBS];
	uint64_t bytes = 0;
	size_t i, n = 0;
	int copied;

	for (i = 0; i < live->n; i++) {
		copied = copy_one(gc, fd, &live->list[i], &to[n], err);
		if (copied == -1)
			return -1;
		if (copied == 0)
			continue;
		from[n++] = live->list[i];
		bytes += live->list[i].stored;
		if (n < BATCH_BLOBS && bytes < BATCH_BYTES)
			continue;
		if (move_rows(gc, from, to, n, err) == -1)
			return -1;
		n = 0;
		bytes = 0;
	}
	return n > 0 ? move_rows(gc, from, to, n, err) : 0;
}

static int
list_live(struct gc *gc, int32_t segment, struct refs *live, struct err *err)
{
	live->n = 0;
	return store_segment_each(gc->store, segment, note_ref, live, err);
}

static int
remove_segment(struct gc *gc, int32_t segment, uint64_t size,
    struct err *err)
{
	char name[BLOB_NAME_SIZE];

	blob_segment_name(name, segment);
	if (unlinkat(gc->dir.fd, name, 0) == -1)
		return blob_fail(&gc->dir, name, "not removed", err);
	gc->result->segments_removed++;
	gc->result->bytes_freed += size;
	return store_segment_forget(gc->store, segment, err);
}

/* A failover may take back what was committed just now, and the rows point here
 * again: from today on the segment is young once more. */
static int
make_young(struct gc *gc, int32_t segment, int fd, struct err *err)
{
	char name[BLOB_NAME_SIZE];

	if (futimens(fd, NULL) == 0)
		return 0;
	return blob_fail(&gc->dir, blob_segment_name(name, segment),
	    "not marked", err);
}

static int
empty_segment(struct gc *gc, int32_t segment, int fd, uint64_t size,
    struct err *err)
{
	struct refs live = { .n = 0 };
	int result = list_live(gc, segment, &live, err);
	bool had_rows = live.n > 0;

	if (result == 0)
		result = copy_live(gc, fd, &live, err);
	if (result == 0)
		result = list_live(gc, segment, &live, err);
	if (result == 0 && live.n == 0)
		result = had_rows && gc->min_age_secs > 0 ?
		    make_young(gc, segment, fd, err) :
		    remove_segment(gc, segment, size, err);
	free(live.list);
	return result;
}

/* Counted once for each size the file had: what is deleted later is in the
 * segment's row, and a sealed segment does not grow. */
static int
is_worth_it(const struct gc *gc, int32_t segment,
    const struct segment_use *use, uint64_t size, bool *is_worth_r,
    struct err *err)
{
	uint64_t dead = use == NULL ? 0 : use->dead_bytes;

	if ((use == NULL || use->counted_size != size) &&
	    store_segment_count(gc->store, segment, size, RECORD_HEAD, &dead,
		err) == -1)
		return -1;
	*is_worth_r = size > 0 && dead * 100 / size >= gc->min_dead_percent;
	return 0;
}

static int
look_at_segment(struct gc *gc, int32_t segment, const struct segment_use *use,
    struct err *err)
{
	char name[BLOB_NAME_SIZE];
	struct stat st;
	bool is_worth;
	int result = 0;
	int fd = openat(gc->dir.fd, blob_segment_name(name, segment),
	    O_RDONLY | O_CLOEXEC);

	if (fd == -1)
		return errno == ENOENT ? 0 :
		    blob_fail(&gc->dir, name, "not opened", err);
	gc->result->segments_seen++;
	/* locked: nobody appends from here on */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 &&
	    st.st_mtime <= gc->youngest_secs) {
		result = is_worth_it(gc, segment, use, (uint64_t)st.st_size,
		    &is_worth, err);
		if (result == 0 && is_worth)
			result = empty_segment(gc, segment, fd,
			    (uint64_t)st.st_size, err);
	}
	close(fd);
	return result;
}

static int
by_id(const void *key, const void *use)
{
	int32_t a = *(const int32_t *)key;
	int32_t b = ((const struct segment_use *)use)->id;

	return (a > b) - (a < b);
}

static int
look_at_segments(struct gc *gc, struct arena *arena, struct err *err)
{
	struct segment_use *uses;
	int32_t *numbers;
	size_t n_uses, n, i;
	int result = 0;

	if (store_segments(gc->store, arena, &uses, &n_uses, err) == -1 ||
	    blob_segments_list(&gc->dir, &numbers, &n, err) == -1)
		return -1;
	for (i = 0; i + 1 < n && result == 0; i++) {
		if (clock_mono_msecs() >= gc->deadline_mono_msecs) {
			gc->result->has_more = true;
			break;
		}
		result = look_at_segment(gc, numbers[i],
		    n_uses == 0 ? NULL : bsearch(&numbers[i], uses, n_uses,
		    sizeof(*uses), by_id), err);
	}
	free(numbers);
	return result;
}

/* --- files of their own ----------------------------------------------------------- */

/* 1: gone; 0: young or busy, another time. */
static int
remove_file(struct gc *gc, const uint8_t digest[DIGEST_SIZE],
    struct err *err)
{
	char name[BLOB_NAME_SIZE], parent[BLOB_NAME_SIZE];
	struct stat st;
	int fd, result = 0;

	blob_file_name(name, digest);
	snprintf(parent, sizeof(parent), "%.6s", name);
	fd = openat(gc->dir.fd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		return errno == ENOENT ? 1 :
		    blob_fail(&gc->dir, parent, "not opened", err);
	/* against somebody who puts the same message right now */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		if (fstatat(gc->dir.fd, name, &st, 0) == -1)
			result = errno == ENOENT;
		else if (st.st_mtime <= gc->youngest_secs &&
		    unlinkat(gc->dir.fd, name, 0) == 0) {
			gc->result->files_removed++;
			gc->result->bytes_freed += (uint64_t)st.st_size;
			result = 1;
		}
	}
	close(fd);
	return result;
}

static int
look_at_files(struct gc *gc, struct arena *arena, int64_t min_age_secs,
    struct err *err)
{
	uint8_t(*digests)[DIGEST_SIZE];
	size_t n, i;
	int gone;

	if (store_blob_files_dead(gc->store, min_age_secs, FILES_AT_ONCE,
		arena, &digests, &n, err) == -1)
		return -1;
	for (i = 0; i < n; i++) {
		gone = remove_file(gc, digests[i], err);
		if (gone == -1 || (gone == 1 &&
			store_blob_file_forget(gc->store, digests[i], err) ==
			    -1))
			return -1;
	}
	return 0;
}

/* Files that a killed writer put in place before there was a row. */
struct orphans {
	uint8_t digests[ORPHANS_AT_ONCE][DIGEST_SIZE];
	bool is_unknown[ORPHANS_AT_ONCE];
	size_t n;
};

static int
remove_orphans(struct gc *gc, struct orphans *o, struct err *err)
{
	size_t i;

	if (store_blobs_unknown(gc->store,
		(const uint8_t (*)[DIGEST_SIZE])o->digests, o->n,
		o->is_unknown, err) == -1)
		return -1;
	for (i = 0; i < o->n; i++)
		if (o->is_unknown[i] &&
		    remove_file(gc, o->digests[i], err) == -1)
			return -1;
	o->n = 0;
	return 0;
}

static int
look_at_directory(struct gc *gc, unsigned number, struct orphans *o,
    struct err *err)
{
	char name[BLOB_NAME_SIZE];
	const struct dirent *entry;
	struct stat st;
	int fd, result = 0;
	DIR *d;

	snprintf(name, sizeof(name), "big/%02x", number);
	fd = openat(gc->dir.fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 && errno == ENOENT)
		return 0;
	d = fd == -1 ? NULL : fdopendir(fd);
	if (d == NULL)
		return blob_fail(&gc->dir, name, "not opened", err);
	while (result == 0 && (entry = readdir(d)) != NULL) {
		if (!blob_digest_parse(entry->d_name, o->digests[o->n]) ||
		    fstatat(dirfd(d), entry->d_name, &st, 0) == -1 ||
		    st.st_mtime > gc->youngest_secs)
			continue;
		if (++o->n == ORPHANS_AT_ONCE)
			result = remove_orphans(gc, o, err);
	}
	closedir(d);
	return result;
}

/* From anywhere, so that none is missed for ever when the time is short. */
static int
look_for_orphans(struct gc *gc, struct err *err)
{
	struct orphans *o = xcalloc(1, sizeof(*o));
	unsigned first = arc4random_uniform(256), i;
	int result = 0;

	for (i = 0; i < 256 && result == 0; i++) {
		if (clock_mono_msecs() >= gc->deadline_mono_msecs) {
			gc->result->has_more = true;
			break;
		}
		result = look_at_directory(gc, (first + i) % 256, o, err);
	}
	if (result == 0 && o->n > 0)
		result = remove_orphans(gc, o, err);
	free(o);
	return result;
}

/* A stream's writer holds a lock on it: what is old and free has none. */
static void
remove_abandoned(struct gc *gc, int tmp, const char *name)
{
	int fd = openat(tmp, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd == -1)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_mtime <= gc->youngest_secs &&
	    flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(tmp, name, 0) == 0) {
		gc->result->files_removed++;
		gc->result->bytes_freed += (uint64_t)st.st_size;
	}
	close(fd);
}

static int
look_at_streams(struct gc *gc, struct err *err)
{
	int fd = openat(gc->dir.fd, "tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd == -1 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (d == NULL)
		return blob_fail(&gc->dir, "tmp", "not opened", err);
	while ((entry = readdir(d)) != NULL)
		if (entry->d_name[0] != '.')
			remove_abandoned(gc, dirfd(d), entry->d_name);
	closedir(d);
	return 0;
}

int
blob_gc(struct store *store, const char *dir, unsigned min_dead_percent,
    int64_t min_age_secs, struct blob_gc_result *result_r, struct err *err)
{
	return blob_gc_for(store, dir, min_dead_percent, min_age_secs,
	    INT32_MAX, result_r, err);
}

int
blob_gc_for(struct store *store, const char *dir, unsigned min_dead_percent,
    int64_t min_age_secs, int64_t msecs, struct blob_gc_result *result_r,
    struct err *err)
{
	struct gc gc = { .store = store, .min_dead_percent = min_dead_percent,
		.min_age_secs = min_age_secs,
		.youngest_secs = clock_wall_secs() - min_age_secs,
		.deadline_mono_msecs = clock_mono_msecs() + msecs,
		.result = result_r };
	struct arena *arena;
	int result;

	*result_r = (struct blob_gc_result){ .segments_seen = 0 };
	/* In another database's directory everything would look dead. */
	if (blob_store_check(store, dir, err) == -1 ||
	    blob_writer_new(&gc.writer, dir, err) == -1)
		return -1;
	gc.dir = *blob_writer_dir(gc.writer);
	arena = arena_new("blob gc");
	result = look_at_segments(&gc, arena, err);
	if (result == 0)
		result = look_at_files(&gc, arena, min_age_secs, err);
	if (result == 0)
		result = look_at_streams(&gc, err);
	if (result == 0)
		result = look_for_orphans(&gc, err);
	arena_free(&arena);
	blob_writer_free(&gc.writer);
	return result;
}
