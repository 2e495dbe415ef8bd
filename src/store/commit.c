/*
 * commit.c - the transaction of a batch.
 *
 * Runs in: hot, pool and job children.  store_commit_start blocks until the
 * socket has taken everything, store_commit_wait until the answer is there.
 *
 * One pipeline: [prepare] BEGIN, fence, ingest(), COMMIT, sync.  The server
 * works while the child fetches and parses the next batch; only when the
 * answer is there do the cursor and generation in memory move.
 */
#include "store/batch.h"
#include "store/session.h"

#define INGEST "ingest"

void
param_cursor(struct params *p, struct column *c, const struct cursor *cursor)
{
	column_init(c, PG_INT8);
	if (cursor == NULL) {
		param_null_array(p, PG_INT8);
		return;
	}
	column_int8(c, cursor->uidvalidity);
	column_int8(c, cursor->uidnext);
	column_int8(c, (int64_t)cursor->highestmodseq);
	column_int8(c, cursor->backfill_below);
	column_int8(c, cursor->messages);
	column_int8(c, cursor->flag_scan_uid);
	param_column(p, c);
}

/* SELECT ... FROM ingest($1, ..., $n) */
static void
ingest_sql(struct buf *sql, int n)
{
	int i;

	buf_adds(sql, "SELECT created, updated, threads, newest, stored "
	    "FROM ingest(");
	for (i = 1; i <= n; i++)
		buf_addf(sql, "%s$%d", i > 1 ? ", " : "", i);
	buf_addc(sql, ')');
}

/*
 * Prepared in the same pipeline as its first use: a hot child's session
 * lives for one batch, and a round trip of its own would cost more than the
 * parsing it saves.
 */
static int
send_ingest(struct store *s, const struct params *p, struct err *err)
{
	struct buf sql = BUF_INIT;
	int rc = 1;

	s->commit.has_prepare = !s->is_ingest_prepared;
	if (s->commit.has_prepare) {
		ingest_sql(&sql, p->n);
		rc = PQsendPrepare(s->conn, INGEST, buf_str(&sql), p->n,
		    p->types);
		buf_release(&sql);
	}
	if (rc == 1)
		rc = PQsendQueryPrepared(s->conn, INGEST, p->n, p->values,
		    p->lengths, p->formats, 0);
	return rc == 1 ? 0 : session_fail(s, "not sent", err);
}

int
store_commit_start(struct store *s, const struct fence *fence,
    struct folder *folder, struct batch *b, const struct cursor *cursor,
    struct err *err)
{
	struct column cursor_column;
	struct params p;
	int rc;

	if (batch_count(b) == 0 && cursor == NULL)
		return 0;
	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_int8(&p, folder->id);
	param_int8(&p, folder->generation);
	param_cursor(&p, &cursor_column, cursor);
	batch_params(b, &fence->account_id, &p);
	rc = session_begin_fenced(s, fence, err);
	if (rc == 0)
		rc = send_ingest(s, &p, err);
	if (rc == 0)
		rc = session_end(s, err);
	column_release(&cursor_column);
	if (rc == -1)
		return -1;
	s->commit.is_active = true;
	s->commit.folder = folder;
	s->commit.has_cursor = cursor != NULL;
	if (cursor != NULL)
		s->commit.cursor = *cursor;
	return 0;
}

/* The server holds its answers back until the end of the pipeline, so that the
 * first of them tells of all. */
bool
store_commit_is_done(struct store *s)
{
	return !s->commit.is_active || session_has_result(s);
}

int
store_commit_wait(struct store *s, struct arena *arena,
    struct commit_result *result_r, struct err *err)
{
	PGresult *results[2] = { NULL, NULL };
	PGresult *res;
	int rc;

	*result_r = (struct commit_result){ 0 };
	if (!s->commit.is_active)
		return 0;
	s->commit.is_active = false;
	rc = session_collect_all(s, s->commit.has_prepare ? 2 : 1, results,
	    err);
	/* A statement stays prepared even if its transaction fails, but only
	 * if the server came that far. */
	if (s->commit.has_prepare && results[0] != NULL &&
	    PQresultStatus(results[0]) == PGRES_COMMAND_OK)
		s->is_ingest_prepared = true;
	if (rc == 0) {
		res = results[s->commit.has_prepare ? 1 : 0];
		result_ids(arena, res, 0, 0, &result_r->created);
		result_ids(arena, res, 0, 1, &result_r->updated);
		result_ids(arena, res, 0, 2, &result_r->threads);
		result_r->newest_mail_secs = result_int8(res, 0, 3);
		s->commit.folder->stored = result_int8(res, 0, 4);
		if (s->commit.has_cursor) {
			s->commit.folder->cursor = s->commit.cursor;
			s->commit.folder->generation++;
		}
	}
	PQclear(results[0]);
	PQclear(results[1]);
	return rc;
}
