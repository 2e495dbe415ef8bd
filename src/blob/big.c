/*
 * big.c - a message too large to hold: a file of its own.
 *
 * Runs in: children.  Blocks on the disk.
 *
 * Written under tmp, so that a killed writer leaves nothing that looks like a
 * blob; a lock on it tells the clean-up that its writer lives.  The digest is
 * computed on the way and becomes the name.
 */
#include "base/log.h"
#include "base/xmem.h"
#include "blob/blob_private.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct blob_stream {
	struct blob_dir *dir; /* the writer's */
	char name[BLOB_NAME_SIZE];
	int fd;
	uint64_t size;
	gnutls_hash_hd_t hash;
};

int
blob_stream_new(struct blob_writer *w, struct blob_stream **s_r,
    struct err *err)
{
	struct blob_stream *s = xcalloc(1, sizeof(*s));

	s->dir = blob_writer_dir(w);
	snprintf(s->name, sizeof(s->name), "tmp/%08x%08x", arc4random(),
	    arc4random());
	s->fd = openat(s->dir->fd, s->name,
	    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (s->fd == -1) {
		blob_fail(s->dir, s->name, "not created", err);
		free(s);
		return -1;
	}
	flock(s->fd, LOCK_EX | LOCK_NB);
	if (gnutls_hash_init(&s->hash, GNUTLS_DIG_SHA256) < 0)
		die_bug("SHA-256 failed");
	*s_r = s;
	return 0;
}

int
blob_stream_add(struct blob_stream *s, const void *bytes, size_t len,
    struct err *err)
{
	const char *p = bytes;
	ssize_t n;

	if (gnutls_hash(s->hash, bytes, len) < 0)
		die_bug("SHA-256 failed");
	/* pwrite: the parser moves the descriptor's position */
	while (len > 0) {
		n = pwrite(s->fd, p, len, (off_t)s->size);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return blob_fail(s->dir, s->name, "not written", err);
		p += n;
		len -= (size_t)n;
		s->size += (uint64_t)n;
	}
	return 0;
}

int
blob_stream_fd(struct blob_stream *s)
{
	return s->fd;
}

uint64_t
blob_stream_size(const struct blob_stream *s)
{
	return s->size;
}

/*
 * Over an equal file if there is one: that makes it young again, and the
 * garbage collection lets it be.  The lock keeps that from looking before and
 * removing after.
 */
static int
rename_and_sync(struct blob_stream *s, const char *parent, const char *name,
    struct err *err)
{
	int fd = openat(s->dir->fd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = 0;

	if (fd == -1 || flock(fd, LOCK_SH) == -1)
		result = blob_fail(s->dir, parent, "not locked", err);
	else if (renameat(s->dir->fd, s->name, s->dir->fd, name) == -1)
		result = blob_fail(s->dir, name, "not renamed", err);
	else {
		s->name[0] = '\0';
		if (fsync(fd) == -1)
			result = blob_fail(s->dir, parent, "not synced", err);
	}
	if (fd != -1)
		close(fd);
	return result;
}

static int
move_into_place(struct blob_stream *s, const uint8_t digest[DIGEST_SIZE],
    struct err *err)
{
	char name[BLOB_NAME_SIZE], parent[BLOB_NAME_SIZE];

	blob_file_name(name, digest);
	snprintf(parent, sizeof(parent), "%.6s", name); /* "big/aa" */
	if (fsync(s->fd) == -1)
		return blob_fail(s->dir, s->name, "not synced", err);
	if (mkdirat(s->dir->fd, parent, 0750) == -1 && errno != EEXIST)
		return blob_fail(s->dir, parent, "not created", err);
	/* Also when it was there: whoever made it may have died before. */
	if (blob_dir_sync(s->dir, "big", err) == -1)
		return -1;
	return rename_and_sync(s, parent, name, err);
}

int
blob_stream_finish(struct blob_stream **s, struct blob_ref *ref_r,
    struct err *err)
{
	struct blob_ref ref = { .codec = BLOB_RAW, .stored = (*s)->size,
		.size = (*s)->size };
	int result;

	gnutls_hash_output((*s)->hash, ref.digest);
	result = move_into_place(*s, ref.digest, err);
	if (result == 0)
		*ref_r = ref;
	blob_stream_abort(s);
	return result;
}

void
blob_stream_abort(struct blob_stream **s)
{
	if (*s == NULL)
		return;
	if ((*s)->name[0] != '\0')
		unlinkat((*s)->dir->fd, (*s)->name, 0);
	close((*s)->fd);
	gnutls_hash_deinit((*s)->hash, NULL);
	free(*s);
	*s = NULL;
}
