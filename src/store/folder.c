/*
 * folder.c - the folders of an account: what we know of them, and changes by
 * discovery.
 *
 * Runs in: hot, pool and job children.  Blocks.
 */
#include "store/session.h"

#define FOLDERS_AT_ONCE 500 /* a transaction */

#define FOLDERS_SQL                                                         \
	"SELECT id, path, wire, delimiter, coalesce(role, ''), "            \
	"is_selectable, uidvalidity, uidnext, highestmodseq, "              \
	"backfill_below, server_messages, flag_scan_uid, is_remapping, "    \
	SQL_SECS("missing_since") ", " SQL_SECS("parked_until") ", "        \
	"park_reason, park_failures, no_condstore, "                        \
	SQL_SECS("last_poll_at") ", generation, messages, doubt, "          \
	SQL_SECS("no_condstore_until") ", " SQL_SECS("no_uidnext_until")    \
	", " SQL_SECS("verified_at") ", "                                   \
	"unseen + (SELECT count(DISTINCT q.uid_from) FROM quarantine q "    \
	"    WHERE q.mailbox_id = mailbox.id AND q.uid_from <> 0 "          \
	"    AND q.uid_from = q.uid_to AND NOT EXISTS ("                    \
	"    SELECT FROM message_state m WHERE m.mailbox_id = mailbox.id "  \
	"    AND m.uid = q.uid_from AND m.deleted_at IS NULL)) "            \
	", coalesce(object_id, '') "                                       \
	"FROM mailbox WHERE account_id = $1 AND deleted_at IS NULL "

/* A wire name has no NUL (list.c of src/imap), so it is a C string. */
static const char *
read_wire(const PGresult *res, int row, int column, struct arena *arena)
{
	size_t len;
	const uint8_t *bytes = result_bytes(arena, res, row, column, &len);

	return arena_strndup(arena, (const char *)bytes, len);
}

static void
param_wire(struct params *p, const char *wire)
{
	param_bytes(p, wire, strlen(wire));
}

static void
read_folder(const PGresult *res, int row, struct arena *arena,
    struct folder *f)
{
	f->id = result_int8(res, row, 0);
	f->path = result_text(arena, res, row, 1);
	f->wire = read_wire(res, row, 2, arena);
	f->delimiter = PQgetvalue(res, row, 3)[0];
	if (folder_role_parse(PQgetvalue(res, row, 4), &f->role) == -1)
		f->role = ROLE_NONE;
	f->is_selectable = result_bool(res, row, 5);
	f->cursor.uidvalidity = (uint32_t)result_int8(res, row, 6);
	f->cursor.uidnext = (uint32_t)result_int8(res, row, 7);
	f->cursor.highestmodseq = (uint64_t)result_int8(res, row, 8);
	f->cursor.backfill_below = (uint32_t)result_int8(res, row, 9);
	f->cursor.messages = (uint32_t)result_int8(res, row, 10);
	f->cursor.flag_scan_uid = (uint32_t)result_int8(res, row, 11);
	f->is_remapping = result_bool(res, row, 12);
	f->missing_since_secs = result_int8(res, row, 13);
	f->parked_until_secs = result_int8(res, row, 14);
	f->park_reason = result_text(arena, res, row, 15);
	f->park_failures = (unsigned)result_int8(res, row, 16);
	f->no_condstore = result_text(arena, res, row, 17);
	f->last_poll_secs = result_int8(res, row, 18);
	f->generation = result_int8(res, row, 19);
	f->stored = result_int8(res, row, 20);
	f->doubt = result_text(arena, res, row, 21);
	f->no_condstore_until_secs = result_int8(res, row, 22);
	f->no_uidnext_until_secs = result_int8(res, row, 23);
	f->verified_secs = result_int8(res, row, 24);
	f->explained = result_int8(res, row, 25);
	f->object_id = result_text(arena, res, row, 26);
}

static int
folder_load(struct store *s, const char *sql, const struct uuid *account_id,
    struct arena *arena, struct folder **folders_r, size_t *n_r,
    struct err *err)
{
	struct params p;
	PGresult *res;
	int i, n;

	params_init(&p);
	param_uuid(&p, account_id);
	if (session_run(s, sql, &p, &res, err) == -1)
		return -1;
	n = PQntuples(res);
	*folders_r = ARENA_ARRAY(arena, struct folder, (size_t)n);
	for (i = 0; i < n; i++)
		read_folder(res, i, arena, &(*folders_r)[i]);
	*n_r = (size_t)n;
	PQclear(res);
	return 0;
}

int
store_folders_load(struct store *s, const struct uuid *account_id,
    struct arena *arena, struct folder **folders_r, size_t *n_r,
    struct err *err)
{
	return folder_load(s, FOLDERS_SQL "ORDER BY id", account_id, arena,
	    folders_r, n_r, err);
}

int
store_inbox_load(struct store *s, const struct uuid *account_id,
    struct arena *arena, struct folder **inbox_r, struct err *err)
{
	struct folder *folders;
	size_t n;

	if (folder_load(s, FOLDERS_SQL "AND role = 'inbox' ORDER BY id",
		account_id, arena, &folders, &n, err) == -1)
		return -1;
	*inbox_r = n > 0 ? &folders[0] : NULL;
	return 0;
}

/* --- discovery ------------------------------------------------------------------ */

/* A folder of that name may be there already: a try before this one was
 * committed without our hearing of it. */
static int
send_create(struct store *s, const struct fence *fence,
    const struct folder_op *op, struct err *err)
{
	const char delimiter[2] = { op->delimiter, '\0' };
	struct params p;

	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_wire(&p, op->wire);
	param_text(&p, op->path);
	param_text(&p, delimiter);
	param_text(&p, folder_role_name(op->role));
	param_bool(&p, op->is_selectable);
	return session_send(s, "INSERT INTO mailbox (account_id, wire, path, "
	    "delimiter, role, is_selectable) "
	    "VALUES ($1, $2, $3, $4, nullif($5, ''), $6) "
	    "ON CONFLICT (account_id, sha256(wire)) WHERE deleted_at IS NULL "
	    "DO UPDATE SET path = excluded.path, role = excluded.role, "
	    "is_selectable = excluded.is_selectable RETURNING id", &p, err);
}

static int
send_update(struct store *s, const struct fence *fence,
    const struct folder_op *op, struct err *err)
{
	const char delimiter[2] = { op->delimiter, '\0' };
	struct params p;

	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_int8(&p, op->id);
	param_text(&p, delimiter);
	param_text(&p, folder_role_name(op->role));
	param_bool(&p, op->is_selectable);
	return session_send(s, "SELECT mailbox_update($1, $2, $3, $4, $5)",
	    &p, err);
}

static int
send_rename(struct store *s, const struct fence *fence,
    const struct folder_op *op, struct err *err)
{
	struct params p;

	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_int8(&p, op->id);
	param_wire(&p, op->wire);
	param_text(&p, op->path);
	return session_send(s, "SELECT mailbox_rename($1, $2, $3, $4)", &p,
	    err);
}

static int
send_by_id(struct store *s, const struct fence *fence, int64_t id,
    const char *sql, struct err *err)
{
	struct params p;

	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_int8(&p, id);
	return session_send(s, sql, &p, err);
}

static int
send_op(struct store *s, const struct fence *fence,
    const struct folder_op *op, struct err *err)
{
	switch (op->kind) {
	case FOLDER_CREATE:
		return send_create(s, fence, op, err);
	case FOLDER_RENAME:
		return send_rename(s, fence, op, err);
	case FOLDER_UPDATE:
		return send_update(s, fence, op, err);
	case FOLDER_MISSING:
		return send_by_id(s, fence, op->id,
		    "SELECT mailbox_missing($1, $2)", err);
	case FOLDER_VANISH:
		return send_by_id(s, fence, op->id,
		    "SELECT mailbox_vanish($1, $2)", err);
	}
	die_bug("folder operation %d", (int)op->kind);
}

/* All of them or none. */
static int
write_some(struct store *s, const struct fence *fence, struct folder_op *ops,
    size_t n, struct err *err)
{
	PGresult *results[FOLDERS_AT_ONCE] = { NULL };
	size_t i;
	int rc;

	if (session_begin_fenced(s, fence, err) == -1)
		return -1;
	for (i = 0; i < n; i++)
		if (send_op(s, fence, &ops[i], err) == -1)
			return -1;
	if (session_end(s, err) == -1)
		return -1;
	rc = session_collect_all(s, n, results, err);
	for (i = 0; rc == 0 && i < n; i++)
		if (ops[i].kind == FOLDER_CREATE)
			ops[i].id = result_int8(results[i], 0, 0);
	for (i = 0; i < n; i++)
		PQclear(results[i]);
	return rc;
}

/* Is it the value that PostgreSQL does not take?  Then it will not take it the
 * next time either: too large, no text, against a constraint of somebody's. */
static bool
is_about_the_value(const struct store *s, const struct err *err)
{
	bool is_refusal = strncmp(s->sqlstate, "23", 2) == 0 ||
	    strncmp(s->sqlstate, "P0", 2) == 0;

	return err->kind == ERR_PERMANENT ||
	    (err->kind == ERR_TEMPORARY && is_refusal);
}

/* Halves what is refused until it is one, which is left out. */
static int
write_or_leave_out(struct store *s, const struct fence *fence,
    struct folder_op *ops, size_t n, struct folder_refusal *refused,
    struct err *err)
{
	struct err why = ERR_INIT;

	if (write_some(s, fence, ops, n, &why) == 0)
		return 0;
	if (!is_about_the_value(s, &why)) {
		*err = why;
		return -1;
	}
	if (n == 1) {
		ops->is_refused = true;
		if (refused->n++ == 0) {
			refused->first = ops;
			refused->why = why;
		}
		return 0;
	}
	return write_or_leave_out(s, fence, ops, n / 2, refused, err) == -1 ||
	    write_or_leave_out(s, fence, ops + n / 2, n - n / 2, refused,
		err) == -1 ? -1 : 0;
}

int
store_folders_write(struct store *s, const struct fence *fence,
    struct folder_op *ops, size_t n, struct folder_refusal *refused_r,
    struct err *err)
{
	size_t from, some;

	memset(refused_r, 0, sizeof(*refused_r));
	for (from = 0; from < n; from += some) {
		some = n - from < FOLDERS_AT_ONCE ? n - from : FOLDERS_AT_ONCE;
		if (write_or_leave_out(s, fence, ops + from, some, refused_r,
			err) == -1)
			return -1;
	}
	return 0;
}

/* Twice as long each time; from the start again when it went well for long. */
#define DISTRUST_SQL(what)                                                  \
	"UPDATE mailbox SET " what "_times = CASE WHEN " what "_until < "   \
	"now() - interval '30 days' THEN 1 ELSE " what "_times + 1 END, "   \
	what "_until = now() + least(interval '32 days', "                  \
	"interval '1 day' * power(2, CASE WHEN " what "_until < now() - "   \
	"interval '30 days' THEN 0 ELSE least(5, " what "_times) END))"

int
store_folder_distrust(struct store *s, const struct fence *fence,
    struct folder *folder, enum distrust what, const char *reason,
    struct err *err)
{
	static const char *const sql[] = {
		[DISTRUST_CONDSTORE] = DISTRUST_SQL("no_condstore")
		    ", no_condstore = $3 WHERE account_id = $1 AND id = $2 "
		    "RETURNING " SQL_SECS("no_condstore_until"),
		[DISTRUST_UIDNEXT] = DISTRUST_SQL("no_uidnext")
		    " WHERE account_id = $1 AND id = $2 AND $3 <> '' "
		    "RETURNING " SQL_SECS("no_uidnext_until"),
	};
	struct params p;
	PGresult *res;
	int64_t until;

	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_int8(&p, folder->id);
	param_text(&p, reason);
	if (session_fenced(s, fence, sql[what], &p, &res, err) == -1)
		return -1;
	until = PQntuples(res) > 0 ? result_int8(res, 0, 0) : 0;
	PQclear(res);
	if (what == DISTRUST_CONDSTORE)
		folder->no_condstore_until_secs = until;
	else
		folder->no_uidnext_until_secs = until;
	return 0;
}

int
store_folder_verified(struct store *s, const struct fence *fence,
    struct folder *folder, bool is_whole, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_int8(&p, folder->id);
	param_int8(&p, folder->generation);
	param_bool(&p, is_whole);
	if (session_fenced(s, fence, "UPDATE mailbox SET verified_at = now(), "
	    "doubt = CASE WHEN $4 THEN '' ELSE doubt END "
	    "WHERE account_id = $1 AND id = $2 AND generation = $3 "
	    "RETURNING " SQL_SECS("verified_at"), &p, &res, err) == -1)
		return -1;
	if (PQntuples(res) > 0) {
		folder->verified_secs = result_int8(res, 0, 0);
		if (is_whole)
			folder->doubt = "";
	}
	PQclear(res);
	return 0;
}

int
store_folder_unseen(struct store *s, const struct fence *fence,
    int64_t folder_id, int64_t more, struct err *err)
{
	struct params p;

	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_int8(&p, folder_id);
	param_int8(&p, more);
	return session_fenced(s, fence, "UPDATE mailbox SET "
	    "unseen = greatest(unseen + $3, 0) "
	    "WHERE account_id = $1 AND id = $2", &p, NULL, err);
}

int
store_folder_objects(struct store *s, const struct fence *fence,
    struct folder *const *folders, size_t n, struct err *err)
{
	struct column ids, objects;
	struct params p;
	size_t i;
	int rv;

	column_init(&ids, PG_INT8);
	column_init(&objects, PG_TEXT);
	for (i = 0; i < n; i++) {
		column_int8(&ids, folders[i]->id);
		column_text(&objects, folders[i]->object_id);
	}
	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_column(&p, &ids);
	param_column(&p, &objects);
	rv = session_fenced(s, fence, "SELECT mailbox_objects($1, $2, $3)",
	    &p, NULL, err);
	column_release(&ids);
	column_release(&objects);
	return rv;
}
