/*
 * blob_private.h - what the files of the blob store share: names, the form of
 * a record.
 *
 *	DIR/segments/NNNNNNNN.seg	records one after another
 *	DIR/big/aa/DIGEST		one message, as is
 *	DIR/tmp/			streams that are still being written
 *	DIR/store-id			whose it is; see blob_id.c
 *
 * A record is a header of 64 bytes, little-endian, and the stored bytes:
 *
 *	 0  magic "MHb1"		24  digest, SHA-256 of the raw bytes
 *	 4  codec, one byte		56  zero
 *	 5  zero			60  CRC-32C of the 60 bytes before
 *	 8  stored bytes
 *	16  raw bytes
 */
#ifndef BLOB_PRIVATE_H
#define BLOB_PRIVATE_H

#include "blob/blob.h"

#include <stdbool.h>
#include <sys/types.h>

#define RECORD_HEAD 64
#define SEGMENT_BYTES ((uint64_t)64 * 1024 * 1024)
#define BLOB_NAME_SIZE 96
#define SEGMENTS "segments"

struct blob_dir {
	char *path;
	int fd; /* of the directory; -1: closed */
};

int blob_dir_open(struct blob_dir *dir, const char *path, struct err *err);
/* segments, big and tmp, where they are missing. */
int blob_dir_make_subdirectories(struct blob_dir *dir, struct err *err);
/* What its file store-id says; ERR_STORAGE with the remedy when there is
 * none. */
int blob_dir_id(const struct blob_dir *dir, struct uuid *id_r,
    struct err *err);
/* Is there such a file, whatever is in it? */
bool blob_dir_has_id(const struct blob_dir *dir);
/* ERR_CONFIG when it is the directory of another database than `id`. */
int blob_dir_check(const struct blob_dir *dir, const struct uuid *id,
    struct err *err);
void blob_dir_close(struct blob_dir *dir);
struct blob_dir *blob_writer_dir(struct blob_writer *w);

/* As blob_put, of bytes that are encoded already: `as` says how. */
int blob_append(struct blob_writer *w, const struct blob_ref *as,
    const void *stored, struct blob_ref *ref_r, struct err *err);
/* fsync of a directory in it; name "": itself. */
int blob_dir_sync(const struct blob_dir *dir, const char *name,
    struct err *err);
/* Always -1: ERR_STORAGE "DIR/NAME: WHAT: strerror(errno)". */
int blob_fail(const struct blob_dir *dir, const char *name, const char *what,
    struct err *err);

/* Names below the directory. */
const char *blob_segment_name(char out[BLOB_NAME_SIZE], int32_t segment);
const char *blob_file_name(char out[BLOB_NAME_SIZE],
    const uint8_t digest[DIGEST_SIZE]);
/* Number of "NNNNNNNN.seg"; -1: not such a name. */
int32_t blob_segment_number(const char *name);
/* Numbers of all segments, ascending; free() the list. */
int blob_segments_list(const struct blob_dir *dir, int32_t **numbers_r,
    size_t *n_r, struct err *err);
bool blob_digest_parse(const char *hex, uint8_t digest_r[DIGEST_SIZE]);

void blob_digest(const void *bytes, size_t len, uint8_t digest_r[DIGEST_SIZE]);

/* segment and offset are not part of the header. */
void record_encode(uint8_t out[RECORD_HEAD], const struct blob_ref *ref);
/* -1: no record begins here. */
int record_decode(const uint8_t in[RECORD_HEAD], struct blob_ref *ref_r);

/*
 * The stored bytes of one record or file, decoded, and whether they are what
 * the digest says.  fd is read at its own pace with pread.
 */
int blob_read_at(int fd, uint64_t offset, const struct blob_ref *ref,
    int (*on_bytes)(void *arg, const void *bytes, size_t len), void *arg,
    struct err *err);

#endif
