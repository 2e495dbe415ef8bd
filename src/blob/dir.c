/*
 * dir.c - names in the blob directory, and the header of a record.
 *
 * Runs in: children, mailherdctl.  May block on the disk.
 */
#include "blob/blob_private.h"

#include "base/log.h"
#include "base/xmem.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[4] = { 'M', 'H', 'b', '1' };

int
blob_fail(const struct blob_dir *dir, const char *name, const char *what,
    struct err *err)
{
	return err_set(err, ERR_STORAGE, "%s%s%s: %s: %s", dir->path,
	    name[0] != '\0' ? "/" : "", name, what, strerror(errno));
}

int
blob_dir_sync(const struct blob_dir *dir, const char *name, struct err *err)
{
	int fd = openat(dir->fd, name[0] != '\0' ? name : ".",
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result;

	if (fd == -1)
		return blob_fail(dir, name, "not opened", err);
	result = fsync(fd);
	if (result == -1)
		blob_fail(dir, name, "not synced", err);
	close(fd);
	return result;
}

int
blob_dir_make_subdirectories(struct blob_dir *dir, struct err *err)
{
	static const char *const names[] = { SEGMENTS, "big", "tmp" };
	bool is_new = false;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (mkdirat(dir->fd, names[i], 0750) == 0)
			is_new = true;
		else if (errno != EEXIST)
			return blob_fail(dir, names[i], "not created", err);
	}
	return is_new ? blob_dir_sync(dir, "", err) : 0;
}

int
blob_dir_open(struct blob_dir *dir, const char *path, struct err *err)
{
	dir->path = xstrdup(path);
	dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->fd != -1)
		return 0;
	blob_fail(dir, "", "not opened", err);
	blob_dir_close(dir);
	return -1;
}

void
blob_dir_close(struct blob_dir *dir)
{
	if (dir->fd != -1)
		close(dir->fd);
	dir->fd = -1;
	free(dir->path);
	dir->path = NULL;
}

const char *
blob_segment_name(char out[BLOB_NAME_SIZE], int32_t segment)
{
	snprintf(out, BLOB_NAME_SIZE, SEGMENTS "/%08d.seg", (int)segment);
	return out;
}

const char *
blob_file_name(char out[BLOB_NAME_SIZE], const uint8_t digest[DIGEST_SIZE])
{
	int i, used = snprintf(out, BLOB_NAME_SIZE, "big/%02x/", digest[0]);

	for (i = 0; i < DIGEST_SIZE; i++)
		used += snprintf(out + used, BLOB_NAME_SIZE - (size_t)used,
		    "%02x", digest[i]);
	return out;
}

int32_t
blob_segment_number(const char *name)
{
	int32_t number = 0;
	int i;

	for (i = 0; i < 8; i++) {
		if (!isdigit((unsigned char)name[i]))
			return -1;
		number = number * 10 + (name[i] - '0');
	}
	return strcmp(name + 8, ".seg") == 0 && number > 0 ? number : -1;
}

static int
compare_numbers(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

int
blob_segments_list(const struct blob_dir *dir, int32_t **numbers_r,
    size_t *n_r, struct err *err)
{
	int fd = openat(dir->fd, SEGMENTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd == -1 ? NULL : fdopendir(fd);
	int32_t *numbers = NULL, number;
	const struct dirent *entry;
	size_t n = 0, cap = 0;

	*numbers_r = NULL;
	*n_r = 0;
	if (fd == -1 && errno == ENOENT)
		return 0; /* nothing was ever stored */
	if (d == NULL)
		return blob_fail(dir, SEGMENTS, "not opened", err);
	while ((entry = readdir(d)) != NULL) {
		number = blob_segment_number(entry->d_name);
		if (number == -1)
			continue;
		GROW(numbers, n, cap);
		numbers[n++] = number;
	}
	closedir(d);
	if (n > 0)
		qsort(numbers, n, sizeof(numbers[0]), compare_numbers);
	*numbers_r = numbers;
	*n_r = n;
	return 0;
}

bool
blob_digest_parse(const char *hex, uint8_t digest_r[DIGEST_SIZE])
{
	unsigned byte;
	int i;

	if (strlen(hex) != 2 * DIGEST_SIZE ||
	    strspn(hex, "0123456789abcdef") != 2 * DIGEST_SIZE)
		return false;
	for (i = 0; i < DIGEST_SIZE; i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return false;
		digest_r[i] = (uint8_t)byte;
	}
	return true;
}

/* GnuTLS, because it uses the processor's own SHA-256. */
void
blob_digest(const void *bytes, size_t len, uint8_t digest_r[DIGEST_SIZE])
{
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes, len, digest_r) < 0)
		die_bug("SHA-256 failed");
}

/* --- the header ---------------------------------------------------------------- */

static uint32_t
blob_dir_crc32c(const uint8_t *p, size_t len)
{
	static uint32_t table[256];
	uint32_t crc, i, bit;

	if (table[1] == 0)
		for (i = 0; i < 256; i++) {
			for (crc = i, bit = 0; bit < 8; bit++)
				crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78U : 0);
			table[i] = crc;
		}
	for (crc = ~0U; len > 0; len--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return ~crc;
}

static void
put_le(uint8_t *p, uint64_t v, unsigned bytes)
{
	for (; bytes > 0; bytes--, v >>= 8)
		*p++ = (uint8_t)v;
}

static uint64_t
get_le(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	while (bytes > 0)
		v = v << 8 | p[--bytes];
	return v;
}

void
record_encode(uint8_t out[RECORD_HEAD], const struct blob_ref *ref)
{
	memset(out, 0, RECORD_HEAD);
	memcpy(out, magic, sizeof(magic));
	out[4] = (uint8_t)ref->codec;
	put_le(out + 8, ref->stored, 8);
	put_le(out + 16, ref->size, 8);
	memcpy(out + 24, ref->digest, DIGEST_SIZE);
	put_le(out + 60, blob_dir_crc32c(out, 60), 4);
}

int
record_decode(const uint8_t in[RECORD_HEAD], struct blob_ref *ref_r)
{
	if (memcmp(in, magic, sizeof(magic)) != 0 ||
	    get_le(in + 60, 4) != blob_dir_crc32c(in, 60))
		return -1;
	ref_r->codec = in[4];
	ref_r->stored = get_le(in + 8, 8);
	ref_r->size = get_le(in + 16, 8);
	memcpy(ref_r->digest, in + 24, DIGEST_SIZE);
	return 0;
}
