/*
 * read.c - reads blobs back, one or all.
 *
 * Runs in: children, mailherdctl.  Blocks on the disk.
 *
 * What the disk says is not believed: a record must be the one the row means,
 * and the bytes must have its digest.
 */
#include "config.h"

#include "base/log.h"
#include "base/xmem.h"
#include "blob/blob_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define PIECE 65536

/* --- one record -------------------------------------------------------------------- */

struct reading {
	const struct blob_ref *ref;
	int (*on_bytes)(void *arg, const void *bytes, size_t len);
	void *arg;
	gnutls_hash_hd_t hash;
	uint64_t size; /* raw bytes so far */
	struct err *err;
};

static int
hand_out(struct reading *r, const void *bytes, size_t len)
{
	r->size += len;
	if (r->size > r->ref->size)
		return err_set(r->err, ERR_STORAGE,
		    "damaged: more than its %llu bytes",
		    (unsigned long long)r->ref->size);
	if (gnutls_hash(r->hash, bytes, len) < 0)
		die_bug("SHA-256 failed");
	return len > 0 && r->on_bytes(r->arg, bytes, len) == -1 ? -1 : 0;
}

static int
blob_read_unpack(
    struct reading *r, ZSTD_DStream *zstd, const void *bytes, size_t len)
{
	ZSTD_inBuffer in = { bytes, len, 0 };
	char piece[PIECE];
	ZSTD_outBuffer out;
	size_t result;

	do {
		out = (ZSTD_outBuffer){ piece, sizeof(piece), 0 };
		result = ZSTD_decompressStream(zstd, &out, &in);
		if (ZSTD_isError(result))
			return err_set(r->err, ERR_STORAGE, "damaged: zstd: %s",
			    ZSTD_getErrorName(result));
		if (hand_out(r, piece, out.pos) == -1)
			return -1;
	} while (in.pos < in.size || out.pos == out.size);
	return 0;
}

static int
read_stored(struct reading *r, ZSTD_DStream *zstd, int fd, uint64_t offset)
{
	uint64_t left = r->ref->stored;
	char piece[PIECE];
	ssize_t n;

	while (left > 0) {
		n = pread(fd, piece, left < PIECE ? left : PIECE,
		    (off_t)offset);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return err_set(r->err, ERR_STORAGE, "not read: %s",
			    strerror(errno));
		if (n == 0)
			return err_set(r->err, ERR_STORAGE,
			    "damaged: ends %llu bytes early",
			    (unsigned long long)left);
		if ((zstd != NULL ? blob_read_unpack(r, zstd, piece, (size_t)n)
				  : hand_out(r, piece, (size_t)n)) == -1)
			return -1;
		offset += (uint64_t)n;
		left -= (uint64_t)n;
	}
	return 0;
}

static int
check_digest(struct reading *r)
{
	uint8_t digest[DIGEST_SIZE];

	gnutls_hash_output(r->hash, digest);
	if (r->size == r->ref->size &&
	    memcmp(digest, r->ref->digest, DIGEST_SIZE) == 0)
		return 0;
	return err_set(r->err, ERR_STORAGE,
	    "damaged: the content does not match its digest");
}

int
blob_read_at(int fd, uint64_t offset, const struct blob_ref *ref,
    int (*on_bytes)(void *arg, const void *bytes, size_t len), void *arg,
    struct err *err)
{
	struct reading r = { .ref = ref, .on_bytes = on_bytes, .arg = arg,
		.err = err };
	ZSTD_DStream *zstd = NULL;
	int result;

	if (ref->codec != BLOB_RAW && ref->codec != BLOB_ZSTD)
		return err_set(err, ERR_STORAGE, "damaged: codec %u",
		    ref->codec);
	if (ref->codec == BLOB_ZSTD && (zstd = ZSTD_createDStream()) == NULL)
		xmem_fail(0);
	if (gnutls_hash_init(&r.hash, GNUTLS_DIG_SHA256) < 0)
		die_bug("SHA-256 failed");
	result = read_stored(&r, zstd, fd, offset);
	if (result == 0)
		result = check_digest(&r);
	gnutls_hash_deinit(r.hash, NULL);
	ZSTD_freeDStream(zstd);
	return result;
}

/* The header must be there and be that of `ref`. */
static int
check_head(int fd, const struct blob_ref *ref, struct err *err)
{
	uint8_t head[RECORD_HEAD];
	struct blob_ref found;
	ssize_t n = ref->offset < 0 ? 0 :
	    pread(fd, head, sizeof(head), (off_t)ref->offset);

	if (n == -1)
		return err_set(err, ERR_STORAGE, "not read: %s",
		    strerror(errno));
	if (n == 0)
		return err_set(err, ERR_GONE, "no record there");
	if (n != sizeof(head) || record_decode(head, &found) == -1)
		return err_set(err, ERR_STORAGE, "damaged: no record there");
	if (found.codec != ref->codec || found.stored != ref->stored ||
	    found.size != ref->size ||
	    memcmp(found.digest, ref->digest, DIGEST_SIZE) != 0)
		return err_set(err, ERR_STORAGE,
		    "damaged: the record there is another one");
	return 0;
}

int
blob_read(const char *path, const struct blob_ref *ref,
    int (*on_bytes)(void *arg, const void *bytes, size_t len), void *arg,
    struct err *err)
{
	bool is_file = ref->segment == 0;
	char name[BLOB_NAME_SIZE];
	struct err cause = ERR_INIT;
	struct blob_dir dir;
	int fd, result;

	if (blob_dir_open(&dir, path, err) == -1)
		return -1;
	if (is_file)
		blob_file_name(name, ref->digest);
	else
		blob_segment_name(name, ref->segment);
	fd = openat(dir.fd, name, O_RDONLY | O_CLOEXEC);
	if (fd == -1) {
		blob_fail(&dir, name, "not opened", err);
		if (errno == ENOENT)
			err->kind = ERR_GONE;
		blob_dir_close(&dir);
		return -1;
	}
	result = is_file ? 0 : check_head(fd, ref, &cause);
	if (result == 0)
		result = blob_read_at(fd,
		    is_file ? 0 : (uint64_t)ref->offset + RECORD_HEAD, ref,
		    on_bytes, arg, &cause);
	if (result == -1 && cause.kind != ERR_NONE)
		err_set(err, cause.kind, "%s/%s at %lld: %s", path, name,
		    (long long)ref->offset, cause.text);
	close(fd);
	blob_dir_close(&dir);
	return result;
}

/* --- all ----------------------------------------------------------------------------- */

struct walk {
	struct blob_dir dir;
	int (*on_found)(void *arg, const struct blob_found *found);
	void *arg;
};

static int
blob_read_ignore_bytes(void *arg, const void *bytes, size_t len)
{
	(void)arg;
	(void)bytes;
	(void)len;
	return 0;
}

static void
blob_read_check(
    int fd, uint64_t content, struct blob_found *found, struct err *damage)
{
	if (blob_read_at(fd, content, &found->ref, blob_read_ignore_bytes, NULL,
		damage) == 0)
		return;
	found->state = BLOB_DAMAGED;
	found->what = damage->text;
}

static bool
is_record_at(int fd, uint64_t offset, uint64_t end, struct blob_ref *ref_r)
{
	uint8_t head[RECORD_HEAD];

	return pread(fd, head, sizeof(head), (off_t)offset) == sizeof(head) &&
	    record_decode(head, ref_r) == 0 &&
	    ref_r->stored <= end - offset - RECORD_HEAD;
}

/* After a torn write the next record may begin anywhere. */
static uint64_t
find_record(int fd, uint64_t offset, uint64_t end)
{
	unsigned char piece[PIECE];
	struct blob_ref ref;
	const unsigned char *p;
	ssize_t n;

	while (offset < end) {
		n = pread(fd, piece, sizeof(piece), (off_t)offset);
		if (n < 4)
			return end;
		p = memmem(piece, (size_t)n, "MHb1", 4);
		if (p == NULL) {
			offset += (uint64_t)n - 3;
			continue;
		}
		offset += (uint64_t)(p - piece);
		if (is_record_at(fd, offset, end, &ref))
			return offset;
		offset++;
	}
	return end;
}

/*
 * What begins here.  A writer that is killed in its write leaves the header and
 * some of the content, and whoever comes next appends right behind it: a record
 * that does not match its digest and has another one inside was never whole.
 */
static void
blob_read_look_at(int fd, uint64_t offset, uint64_t end,
    struct blob_found *found, struct err *damage)
{
	bool is_record = is_record_at(fd, offset, end, &found->ref);
	uint64_t next, past = end;

	if (is_record) {
		blob_read_check(fd, offset + RECORD_HEAD, found, damage);
		past = offset + RECORD_HEAD + found->ref.stored;
		found->bytes = past - offset;
		if (found->state == BLOB_GOOD)
			return;
	}
	next = find_record(fd, offset + 1, end);
	if (is_record && next >= past)
		return;
	*found = (struct blob_found){ .state = BLOB_DEAD,
		.bytes = next - offset, .ref.codec = BLOB_RAW, .what = "" };
}

static int
walk_segment(struct walk *w, int32_t segment, int fd, uint64_t end)
{
	struct blob_found found;
	uint64_t offset = 0;

	while (offset < end) {
		struct err damage = ERR_INIT;

		found = (struct blob_found){ .what = "" };
		blob_read_look_at(fd, offset, end, &found, &damage);
		found.ref.segment = segment;
		found.ref.offset = (int64_t)offset;
		if (w->on_found(w->arg, &found) == -1)
			return -1;
		offset += found.bytes;
	}
	return 0;
}

static int
walk_segments(struct walk *w, struct err *err)
{
	char name[BLOB_NAME_SIZE];
	int32_t *numbers;
	struct stat st;
	size_t n, i;
	int fd, result = 0;

	if (blob_segments_list(&w->dir, &numbers, &n, err) == -1)
		return -1;
	for (i = 0; i < n && result == 0; i++) {
		fd = openat(w->dir.fd, blob_segment_name(name, numbers[i]),
		    O_RDONLY | O_CLOEXEC);
		if (fd == -1 && errno == ENOENT)
			continue; /* collected meanwhile */
		if (fd == -1 || fstat(fd, &st) == -1)
			result = blob_fail(&w->dir, name, "not opened", err);
		else
			result = walk_segment(w, numbers[i], fd,
			    (uint64_t)st.st_size);
		if (fd != -1)
			close(fd);
	}
	free(numbers);
	return result;
}

static int
walk_file(struct walk *w, int parent, const char *digest)
{
	struct blob_found found = { .what = "" };
	struct err damage = ERR_INIT;
	struct stat st;
	int fd, result;

	if (!blob_digest_parse(digest, found.ref.digest))
		return 0;
	fd = openat(parent, digest, O_RDONLY | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &st) == -1) {
		if (fd != -1)
			close(fd);
		return 0; /* collected meanwhile */
	}
	found.bytes = found.ref.stored = found.ref.size =
	    (uint64_t)st.st_size;
	blob_read_check(fd, 0, &found, &damage);
	result = w->on_found(w->arg, &found);
	close(fd);
	return result;
}

static int
walk_files(struct walk *w, struct err *err)
{
	char name[BLOB_NAME_SIZE];
	const struct dirent *entry;
	unsigned i;
	int fd, result = 0;
	DIR *d;

	for (i = 0; i < 256 && result == 0; i++) {
		snprintf(name, sizeof(name), "big/%02x", i);
		fd = openat(w->dir.fd, name,
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd == -1 && errno == ENOENT)
			continue;
		d = fd == -1 ? NULL : fdopendir(fd);
		if (d == NULL)
			return blob_fail(&w->dir, name, "not opened", err);
		while (result == 0 && (entry = readdir(d)) != NULL)
			result = walk_file(w, dirfd(d), entry->d_name);
		closedir(d);
	}
	return result;
}

int
blob_walk(const char *path,
    int (*on_found)(void *arg, const struct blob_found *found), void *arg,
    struct err *err)
{
	struct walk w = { .on_found = on_found, .arg = arg };
	int result;

	if (blob_dir_open(&w.dir, path, err) == -1)
		return -1;
	result = walk_segments(&w, err);
	if (result == 0)
		result = walk_files(&w, err);
	blob_dir_close(&w.dir);
	return result;
}
