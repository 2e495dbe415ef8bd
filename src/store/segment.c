/*
 * segment.c - the rows that say where blobs lie, for reading, checking and
 * garbage collection.
 *
 * Runs in: mailherdctl, clerk.  Blocks.
 *
 * The bytes are the business of blob.h; nothing here opens a file.
 */
#include "store/session.h"

#define SLICE 1000
#define BLOB_COLUMNS "b.digest, b.segment, b.\"offset\", b.codec, b.stored, " \
	"b.size"

static void
read_blob(const PGresult *res, int row, int column, struct arena *arena,
    struct blob_ref *ref)
{
	size_t len;
	uint8_t *digest = result_bytes(arena, res, row, column, &len);

	memset(ref, 0, sizeof(*ref));
	if (digest != NULL && len == DIGEST_SIZE)
		memcpy(ref->digest, digest, DIGEST_SIZE);
	ref->segment = (int32_t)result_int8(res, row, column + 1);
	ref->offset = result_int8(res, row, column + 2);
	ref->codec = (uint32_t)result_int8(res, row, column + 3);
	ref->stored = (uint64_t)result_int8(res, row, column + 4);
	ref->size = (uint64_t)result_int8(res, row, column + 5);
}

int
store_message_blob(struct store *s, int64_t message_id,
    struct blob_ref *ref_r, struct err *err)
{
	struct arena *arena;
	struct params p;
	PGresult *res;

	params_init(&p);
	param_int8(&p, message_id);
	if (session_run(s, "SELECT " BLOB_COLUMNS " FROM message m "
	    "JOIN blob b ON b.id = m.blob_id WHERE m.id = $1", &p, &res,
	    err) == -1)
		return -1;
	if (PQntuples(res) == 0) {
		PQclear(res);
		return err_set(err, ERR_GONE, "no stored bytes of message "
		    "%lld", (long long)message_id);
	}
	arena = arena_new("blob");
	read_blob(res, 0, 0, arena, ref_r);
	arena_free(&arena);
	PQclear(res);
	return 0;
}

struct slices {
	const char *sql;
	int32_t segment;
	int64_t after; /* id of the last one seen */
	int (*on_blob)(void *arg, const struct blob_ref *ref);
	void *arg;
};

/* One slice; *n_r rows seen. */
static int
slices_next(struct store *s, struct slices *slices, int *n_r, struct err *err)
{
	struct arena *arena;
	struct blob_ref ref;
	struct params p;
	PGresult *res;
	int i, rc = 0;

	params_init(&p);
	param_int8(&p, slices->after);
	param_int8(&p, SLICE);
	param_int4(&p, slices->segment);
	if (session_run(s, slices->sql, &p, &res, err) == -1)
		return -1;
	arena = arena_new("blobs");
	*n_r = PQntuples(res);
	for (i = 0; rc == 0 && i < *n_r; i++) {
		slices->after = result_int8(res, i, 0);
		read_blob(res, i, 1, arena, &ref);
		rc = slices->on_blob(slices->arg, &ref);
	}
	arena_free(&arena);
	PQclear(res);
	return rc;
}

static int
slices_all(struct store *s, struct slices *slices, struct err *err)
{
	int n, rc;

	do {
		rc = slices_next(s, slices, &n, err);
	} while (rc == 0 && n == SLICE);
	return rc;
}

int
store_blobs_each(struct store *s,
    int (*on_blob)(void *arg, const struct blob_ref *ref), void *arg,
    struct err *err)
{
	return slices_all(s, &(struct slices){ .on_blob = on_blob, .arg = arg,
	    .sql = "SELECT b.id, " BLOB_COLUMNS " FROM blob b "
	    "WHERE b.id > $1 AND $3::integer IS NOT NULL "
	    "ORDER BY b.id LIMIT $2" }, err);
}

int
store_segment_each(struct store *s, int32_t segment,
    int (*on_blob)(void *arg, const struct blob_ref *ref), void *arg,
    struct err *err)
{
	return slices_all(s, &(struct slices){ .on_blob = on_blob, .arg = arg,
	    .segment = segment,
	    .sql = "SELECT b.id, " BLOB_COLUMNS " FROM blob b "
	    "WHERE b.segment = $3 AND b.id > $1 "
	    "ORDER BY b.segment, b.id LIMIT $2" }, err);
}

int
store_segments(struct store *s, struct arena *arena,
    struct segment_use **segments_r, size_t *n_r, struct err *err)
{
	PGresult *res;
	int i;

	if (session_run(s, "SELECT id, dead, counted_size FROM segment "
	    "ORDER BY id", NULL, &res, err) == -1)
		return -1;
	*n_r = (size_t)PQntuples(res);
	*segments_r = ARENA_ARRAY(arena, struct segment_use, *n_r);
	for (i = 0; i < (int)*n_r; i++) {
		struct segment_use *use = &(*segments_r)[i];

		use->id = (int32_t)result_int8(res, i, 0);
		use->dead_bytes = (uint64_t)result_int8(res, i, 1);
		use->counted_size = (uint64_t)result_int8(res, i, 2);
	}
	PQclear(res);
	return 0;
}

int
store_segment_count(struct store *s, int32_t segment, uint64_t file_size,
    uint64_t head_size, uint64_t *dead_r, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_int4(&p, segment);
	param_int8(&p, (int64_t)file_size);
	param_int8(&p, (int64_t)head_size);
	if (session_run(s, "SELECT segment_count($1, $2, $3)", &p, &res,
	    err) == -1)
		return -1;
	*dead_r = (uint64_t)result_int8(res, 0, 0);
	PQclear(res);
	return 0;
}

int
store_blob_move(struct store *s, const struct blob_ref *from,
    const struct blob_ref *to, bool *moved_r, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_bytes(&p, from->digest, DIGEST_SIZE);
	param_int4(&p, from->segment);
	param_int8(&p, from->offset);
	param_int4(&p, to->segment);
	param_int8(&p, to->offset);
	param_int4(&p, (int32_t)to->codec);
	param_int8(&p, (int64_t)to->stored);
	if (session_run(s, "WITH moved AS (UPDATE blob SET segment = $4, "
	    "\"offset\" = $5, codec = $6::smallint, stored = $7 "
	    "WHERE digest = $1 AND segment = $2 AND \"offset\" = $3 "
	    "RETURNING 1) SELECT count(*) FROM moved", &p, &res, err) == -1)
		return -1;
	*moved_r = result_int8(res, 0, 0) == 1;
	PQclear(res);
	return 0;
}

int
store_segment_forget(struct store *s, int32_t segment, struct err *err)
{
	struct params p;

	params_init(&p);
	param_int4(&p, segment);
	return session_run(s, "DELETE FROM segment WHERE id = $1", &p, NULL,
	    err);
}

int
store_blob_files_dead(struct store *s, int64_t min_age_secs, size_t limit,
    struct arena *arena, uint8_t (**digests_r)[DIGEST_SIZE], size_t *n_r,
    struct err *err)
{
	struct params p;
	PGresult *res;
	uint8_t *digest;
	size_t len;
	int i;

	params_init(&p);
	param_int8(&p, min_age_secs);
	param_int8(&p, (int64_t)limit);
	if (session_run(s, "SELECT d.digest FROM blob_file_dead d "
	    "WHERE since <= now() - $1 * interval '1 second' "
	    "AND NOT EXISTS (SELECT FROM blob b WHERE b.digest = d.digest) "
	    "ORDER BY since LIMIT $2", &p, &res, err) == -1)
		return -1;
	*n_r = (size_t)PQntuples(res);
	*digests_r = arena_calloc(arena, *n_r, sizeof(**digests_r));
	for (i = 0; i < (int)*n_r; i++) {
		digest = result_bytes(arena, res, i, 0, &len);
		if (digest != NULL && len == DIGEST_SIZE)
			memcpy((*digests_r)[i], digest, DIGEST_SIZE);
	}
	PQclear(res);
	return 0;
}

int
store_blob_file_forget(struct store *s,
    const uint8_t digest[DIGEST_SIZE], struct err *err)
{
	struct params p;

	params_init(&p);
	param_bytes(&p, digest, DIGEST_SIZE);
	return session_run(s, "DELETE FROM blob_file_dead WHERE digest = $1",
	    &p, NULL, err);
}

int
store_blob_newest(struct store *s, struct blob_ref *ref_r, bool *is_any_r,
    struct err *err)
{
	struct arena *arena = arena_new("newest blob");
	PGresult *res;
	uint8_t *digest;
	size_t len = 0;

	if (session_run(s, "SELECT digest, segment, \"offset\", stored, size, "
	    "codec FROM blob ORDER BY id DESC LIMIT 1", NULL, &res, err) ==
	    -1) {
		arena_free(&arena);
		return -1;
	}
	*ref_r = (struct blob_ref){ .segment = 0 };
	*is_any_r = PQntuples(res) > 0;
	if (*is_any_r) {
		digest = result_bytes(arena, res, 0, 0, &len);
		if (digest != NULL && len == DIGEST_SIZE)
			memcpy(ref_r->digest, digest, DIGEST_SIZE);
		ref_r->segment = (int32_t)result_int8(res, 0, 1);
		ref_r->offset = result_int8(res, 0, 2);
		ref_r->stored = (uint64_t)result_int8(res, 0, 3);
		ref_r->size = (uint64_t)result_int8(res, 0, 4);
		ref_r->codec = (int)result_int8(res, 0, 5);
	}
	PQclear(res);
	arena_free(&arena);
	return 0;
}

int
store_blobs_unknown(struct store *s, const uint8_t (*digests)[DIGEST_SIZE],
    size_t n, bool *unknown_r, struct err *err)
{
	struct column column;
	struct params p;
	PGresult *res;
	size_t i;
	int row, rc;

	column_init(&column, PG_BYTEA);
	for (i = 0; i < n; i++) {
		column_bytes(&column, digests[i], DIGEST_SIZE);
		unknown_r[i] = false;
	}
	params_init(&p);
	param_column(&p, &column);
	rc = session_run(s, "SELECT k FROM unnest($1::bytea[]) "
	    "WITH ORDINALITY d(digest, k) WHERE NOT EXISTS "
	    "(SELECT FROM blob b WHERE b.digest = d.digest)", &p, &res, err);
	column_release(&column);
	if (rc == -1)
		return -1;
	for (row = 0; row < PQntuples(res); row++)
		unknown_r[result_int8(res, row, 0) - 1] = true;
	PQclear(res);
	return 0;
}
