/*
 * apply.c - what the server says about messages that are here already.
 *
 * Runs in: hot, pool and job children.  Blocks.
 *
 * Flags, vanished UIDs, UIDs made void and found again.  Each is one function
 * of etc/schema/002_write.sql in one fenced transaction.
 */
#include "store/session.h"

/* Places as columns; the parameters of apply_changes() and recognise(). */
struct places {
	struct column uid, flags, keywords, modseq, size, internal, mid;
};

static void
places_init(struct places *c)
{
	column_init(&c->uid, PG_INT8);
	column_init(&c->flags, PG_INT4);
	column_init(&c->keywords, PG_TEXT);
	column_init(&c->modseq, PG_INT8);
	column_init(&c->size, PG_INT8);
	column_init(&c->internal, PG_TIMESTAMPTZ);
	column_init(&c->mid, PG_INT8);
}

static void
places_release(struct places *c)
{
	column_release(&c->uid);
	column_release(&c->flags);
	column_release(&c->keywords);
	column_release(&c->modseq);
	column_release(&c->size);
	column_release(&c->internal);
	column_release(&c->mid);
}

static void
apply_add_place(struct places *c, const struct place *place)
{
	column_int8(&c->uid, place->uid);
	column_int8(&c->modseq, (int64_t)place->modseq);
	if (place->has_flags) {
		column_int4(&c->flags, (int32_t)place->flags.bits);
		column_text(&c->keywords, place->flags.keywords);
	} else {
		column_null(&c->flags);
		column_null(&c->keywords);
	}
}

static void
apply_add_identity(struct places *c, const struct place *place)
{
	if (place->size != 0)
		column_int8(&c->size, (int64_t)place->size);
	else
		column_null(&c->size); /* not told */
	if (place->has_internal_date)
		column_time(&c->internal, place->internal_date_secs);
	else
		column_null(&c->internal);
	if (place->message_id != NULL && place->has_internal_date)
		column_int8(&c->mid, mid_hash(place->message_id));
	else
		column_null(&c->mid);
}

static void
param_folder(struct params *p, const struct fence *fence,
    const struct folder *folder)
{
	params_init(p);
	param_uuid(p, &fence->account_id);
	param_int8(p, folder->id);
	param_int8(p, folder->generation);
}

int
store_apply(struct store *s, const struct fence *fence,
    struct folder *folder, const struct place *changed, size_t n_changed,
    const uint32_t *vanished, size_t n_vanished, const struct cursor *cursor,
    struct arena *arena, struct commit_result *result_r, struct err *err)
{
	struct column cursor_column, gone;
	struct places c;
	struct params p;
	PGresult *res;
	size_t i;
	int rc;

	*result_r = (struct commit_result){ 0 };
	places_init(&c);
	column_init(&gone, PG_INT8);
	for (i = 0; i < n_changed; i++)
		if (changed[i].has_flags)
			apply_add_place(&c, &changed[i]);
	for (i = 0; i < n_vanished; i++)
		column_int8(&gone, vanished[i]);
	param_folder(&p, fence, folder);
	param_cursor(&p, &cursor_column, cursor);
	param_column(&p, &c.uid);
	param_column(&p, &c.flags);
	param_column(&p, &c.keywords);
	param_column(&p, &c.modseq);
	param_column(&p, &gone);
	rc = c.uid.n == 0 && gone.n == 0 && cursor == NULL ? 0 :
	    session_fenced(s, fence, "SELECT updated, deleted, threads, stored "
	    "FROM apply_changes($1, $2, $3, $4, $5, $6, $7, $8, $9)", &p,
	    &res, err);
	if (rc == 0 && (c.uid.n > 0 || gone.n > 0 || cursor != NULL)) {
		result_ids(arena, res, 0, 0, &result_r->updated);
		result_ids(arena, res, 0, 1, &result_r->deleted);
		result_ids(arena, res, 0, 2, &result_r->threads);
		folder->stored = result_int8(res, 0, 3);
		PQclear(res);
		if (cursor != NULL) {
			folder->cursor = *cursor;
			folder->generation++;
		}
	}
	places_release(&c);
	column_release(&gone);
	column_release(&cursor_column);
	return rc;
}

/* --- UIDVALIDITY --------------------------------------------------------------- */

/* Transactions of 50 to 100 ms, in which others wait for the fence. */
#define SLICE_VOID 2000
#define SLICE_GONE 1000

int
store_folder_remap(struct store *s, const struct fence *fence,
    struct folder *folder, struct err *err)
{
	struct params p;

	param_folder(&p, fence, folder);
	if (session_fenced(s, fence, "SELECT mailbox_remap($1, $2, $3)", &p,
	    NULL, err) == -1)
		return -1;
	memset(&folder->cursor, 0, sizeof(folder->cursor));
	folder->generation++;
	folder->is_remapping = true;
	return 0;
}

int
store_folder_void(struct store *s, const struct fence *fence,
    struct folder *folder, bool *more_r, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_int8(&p, folder->id);
	param_int4(&p, SLICE_VOID);
	if (session_fenced(s, fence, "SELECT mailbox_void($1, $2, $3)", &p,
	    &res, err) == -1)
		return -1;
	*more_r = result_bool(res, 0, 0);
	PQclear(res);
	if (!*more_r)
		folder->stored = 0;
	return 0;
}

int
store_recognise(struct store *s, const struct fence *fence,
    struct folder *folder, const struct place *places, size_t n,
    bool *recognised, struct arena *arena, struct commit_result *result_r,
    struct err *err)
{
	struct changed_ids found;
	struct places c;
	struct params p;
	PGresult *res;
	size_t i;
	int rc;

	*result_r = (struct commit_result){ 0 };
	memset(recognised, 0, n * sizeof(*recognised));
	if (n == 0)
		return 0;
	places_init(&c);
	for (i = 0; i < n; i++) {
		apply_add_place(&c, &places[i]);
		apply_add_identity(&c, &places[i]);
	}
	param_folder(&p, fence, folder);
	param_column(&p, &c.uid);
	param_column(&p, &c.flags);
	param_column(&p, &c.keywords);
	param_column(&p, &c.modseq);
	param_column(&p, &c.size);
	param_column(&p, &c.internal);
	param_column(&p, &c.mid);
	rc = session_fenced(s, fence, "SELECT recognised, updated, threads, stored "
	    "FROM recognise($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", &p,
	    &res, err);
	places_release(&c);
	if (rc == -1)
		return -1;
	result_ids(arena, res, 0, 0, &found);
	result_ids(arena, res, 0, 1, &result_r->updated);
	result_ids(arena, res, 0, 2, &result_r->threads);
	folder->stored = result_int8(res, 0, 3);
	PQclear(res);
	for (i = 0; i < found.n; i++)
		if (found.ids[i] >= 1 && (size_t)found.ids[i] <= n)
			recognised[found.ids[i] - 1] = true;
	return 0;
}

/* "moved, deleted, threads, has_more" */
static void
take_gone(struct arena *arena, PGresult *res, struct commit_result *result,
    bool *more_r)
{
	result_ids(arena, res, 0, 0, &result->updated);
	result_ids(arena, res, 0, 1, &result->deleted);
	result_ids(arena, res, 0, 2, &result->threads);
	*more_r = result_bool(res, 0, 3);
	PQclear(res);
}

int
store_folder_settle(struct store *s, const struct fence *fence,
    struct folder *folder, struct arena *arena, struct commit_result *result_r,
    bool *more_r, struct err *err)
{
	struct params p;
	PGresult *res;

	*result_r = (struct commit_result){ 0 };
	param_folder(&p, fence, folder);
	param_int4(&p, SLICE_GONE);
	if (session_fenced(s, fence, "SELECT moved, deleted, threads, "
	    "has_more FROM mailbox_settle($1, $2, $3, $4)", &p, &res,
	    err) == -1)
		return -1;
	take_gone(arena, res, result_r, more_r);
	folder->is_remapping = *more_r;
	return 0;
}

int
store_folder_empty(struct store *s, const struct fence *fence,
    int64_t folder_id, struct arena *arena, struct commit_result *result_r,
    bool *more_r, struct err *err)
{
	struct params p;
	PGresult *res;

	*result_r = (struct commit_result){ 0 };
	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_int8(&p, folder_id);
	param_int4(&p, SLICE_GONE);
	if (session_fenced(s, fence, "SELECT moved, deleted, threads, "
	    "has_more FROM mailbox_empty($1, $2, $3)", &p, &res, err) == -1)
		return -1;
	take_gone(arena, res, result_r, more_r);
	return 0;
}

int
store_has_unplaced(struct store *s, const struct uuid *account_id,
    bool *yes_r, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_uuid(&p, account_id);
	if (session_run(s, "SELECT has_unplaced($1)", &p, &res, err) == -1)
		return -1;
	*yes_r = result_bool(res, 0, 0);
	PQclear(res);
	return 0;
}

/* --- reading ------------------------------------------------------------------------ */

int
store_places(struct store *s, int64_t folder_id, uint32_t from, uint32_t to,
    size_t limit, struct arena *arena, struct place **places_r, size_t *n_r,
    struct err *err)
{
	struct params p;
	PGresult *res;
	int i;

	params_init(&p);
	param_int8(&p, folder_id);
	param_int8(&p, from);
	param_int8(&p, to);
	param_int8(&p, (int64_t)limit);
	if (session_run(s, "SELECT uid, flags, modseq, "
	    "array_to_string(keywords, ' ') FROM message_state "
	    "WHERE mailbox_id = $1 AND uid BETWEEN $2 AND $3 "
	    "AND deleted_at IS NULL ORDER BY uid LIMIT $4", &p, &res,
	    err) == -1)
		return -1;
	*n_r = (size_t)PQntuples(res);
	*places_r = ARENA_ARRAY(arena, struct place, *n_r);
	for (i = 0; i < (int)*n_r; i++) {
		struct place *place = &(*places_r)[i];

		place->uid = (uint32_t)result_int8(res, i, 0);
		place->flags.bits = (uint32_t)result_int8(res, i, 1);
		place->has_flags = true;
		place->modseq = (uint64_t)result_int8(res, i, 2);
		place->flags.keywords = PQgetlength(res, i, 3) == 0 ? "" :
		    result_text(arena, res, i, 3);
	}
	PQclear(res);
	return 0;
}

/* Both sorted: one walk. */
int
store_known_uids(struct store *s, int64_t folder_id, const uint32_t *uids,
    size_t n, bool *known_r, struct err *err)
{
	struct column wanted;
	struct params p;
	PGresult *res;
	size_t i = 0;
	int row, rc;

	memset(known_r, 0, n * sizeof(*known_r));
	if (n == 0)
		return 0;
	column_init(&wanted, PG_INT8);
	for (i = 0; i < n; i++)
		column_int8(&wanted, uids[i]);
	params_init(&p);
	param_int8(&p, folder_id);
	param_column(&p, &wanted);
	rc = session_run(s, "SELECT uid FROM message_state "
	    "WHERE mailbox_id = $1 AND uid = ANY ($2) "
	    "AND deleted_at IS NULL ORDER BY uid", &p, &res, err);
	column_release(&wanted);
	if (rc == -1)
		return -1;
	for (row = 0, i = 0; row < PQntuples(res); row++) {
		int64_t uid = result_int8(res, row, 0);

		while (i < n && uids[i] < uid)
			i++;
		while (i < n && uids[i] == uid)
			known_r[i++] = true;
	}
	PQclear(res);
	return 0;
}

/* Both sorted: one walk. */
static void
mark_uids(const PGresult *res, const struct place *places, size_t n,
    bool *marks)
{
	size_t i = 0;
	int row;

	for (row = 0; row < PQntuples(res); row++) {
		int64_t uid = result_int8(res, row, 0);

		while (i < n && places[i].uid < uid)
			i++;
		if (i < n && places[i].uid == uid)
			marks[i] = true;
	}
}

int
store_unlike(struct store *s, int64_t folder_id, const struct place *places,
    size_t n, bool is_final, bool *unlike_r, struct err *err)
{
	struct places c;
	struct params p;
	PGresult *res;
	size_t i;
	int rc;

	memset(unlike_r, 0, n * sizeof(*unlike_r));
	if (n == 0)
		return 0;
	places_init(&c);
	for (i = 0; i < n; i++) {
		apply_add_place(&c, &places[i]);
		apply_add_identity(&c, &places[i]);
	}
	params_init(&p);
	param_int8(&p, folder_id);
	param_column(&p, &c.uid);
	param_column(&p, &c.size);
	param_column(&p, &c.internal);
	param_column(&p, &c.mid);
	param_bool(&p, is_final);
	rc = session_run(s, "SELECT t.uid FROM unnest($2::bigint[], "
	    "$3::bigint[], $4::timestamptz[], $5::bigint[]) "
	    "AS t(uid, size, at, mid) CROSS JOIN LATERAL "
	    "(SELECT m.* FROM message_state st "
	    "JOIN message m ON m.id = st.message_id "
	    "WHERE st.mailbox_id = $1 AND st.uid = t.uid "
	    "AND st.deleted_at IS NULL LIMIT 1) m "
	    "WHERE CASE WHEN NOT $6 THEN m.size <> t.size "
	    "OR m.internal_date <> t.at OR m.mid <> t.mid "
	    "WHEN t.mid IS NULL THEN m.size <> t.size "
	    "AND m.internal_date <> t.at "
	    "ELSE m.mid IS DISTINCT FROM t.mid END ORDER BY t.uid", &p, &res,
	    err);
	places_release(&c);
	if (rc == -1)
		return -1;
	mark_uids(res, places, n, unlike_r);
	PQclear(res);
	return 0;
}

/* Gaps and islands: what a UID and its number differ by is one within each. */
int
store_uid_ranges(struct store *s, int64_t folder_id, struct arena *arena,
    struct uid_range **ranges_r, size_t *n_r, struct err *err)
{
	struct params p;
	PGresult *res;
	uint32_t before = 0;
	size_t i;

	params_init(&p);
	param_int8(&p, folder_id);
	if (session_run(s, "SELECT min(uid), max(uid) FROM "
	    "(SELECT uid, uid - row_number() OVER (ORDER BY uid) AS island "
	    "FROM message_state WHERE mailbox_id = $1 AND uid > 0 "
	    "AND deleted_at IS NULL) u GROUP BY island ORDER BY 1", &p, &res,
	    err) == -1)
		return -1;
	*n_r = (size_t)PQntuples(res);
	*ranges_r = ARENA_ARRAY(arena, struct uid_range, *n_r);
	for (i = 0; i < *n_r; i++) {
		struct uid_range *r = &(*ranges_r)[i];

		r->first = (uint32_t)result_int8(res, (int)i, 0);
		r->last = (uint32_t)result_int8(res, (int)i, 1);
		r->before = before;
		before += r->last - r->first + 1;
	}
	PQclear(res);
	return 0;
}
