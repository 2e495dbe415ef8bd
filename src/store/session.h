/*
 * session.h - one PostgreSQL session, for the other files of src/store.
 *
 * Two ways to run SQL: session_run, one statement on its own, and
 * session_fenced, one statement in a transaction that first proves the fence.
 * Both send everything in one go and wait with a deadline.
 */
#ifndef STORE_SESSION_H
#define STORE_SESSION_H

#include "base/buf.h"
#include "base/log.h"
#include "store/param.h"
#include "store/store.h"

#include <libpq-fe.h>

struct store {
	PGconn *conn;
	/* See connect.c. */
	char *conninfo, *name;
	int host, n_hosts; /* the next one to try */
	struct buf why;	   /* the others were not it */
	PostgresPollingStatusType connecting;
	bool is_open;
	struct log log;
	char sqlstate[6]; /* of the last failure */
	struct uuid blob_id; /* of store_check */
	bool is_ingest_prepared;
	/* The commit in flight; see commit.c. */
	struct {
		bool is_active;
		bool has_prepare;
		struct folder *folder;
		bool has_cursor;
		struct cursor cursor;
	} commit;
};

/* *res_r may be NULL when no rows are wanted; else PQclear it. */
int session_run(struct store *s, const char *sql, const struct params *p,
    PGresult **res_r, struct err *err);

/* BEGIN; fence; sql; COMMIT in one pipeline. */
int session_fenced(struct store *s, const struct fence *fence,
    const char *sql, const struct params *p, PGresult **res_r,
    struct err *err);

/* The halves of a fenced transaction; see commit.c. */
int session_begin_fenced(struct store *s, const struct fence *fence,
    struct err *err);
int session_send(struct store *s, const char *sql, const struct params *p,
    struct err *err);
int session_end(struct store *s, struct err *err);
/* One result of a pipeline; 0 with *res_r NULL at the end of a command. */
int session_result(struct store *s, PGresult **res_r, struct err *err);
/* Whether session_result would return at once: a result is there, or the
 * session is lost.  Never waits. */
bool session_has_result(struct store *s);
/* Collects a whole fenced transaction of `n` statements after the fence;
 * each results[i] (set to NULL before) is to be cleared, also on failure. */
int session_collect_all(struct store *s, size_t n, PGresult **results,
    struct err *err);

/* What PostgreSQL says about the last failure, for ERR_DATABASE. */
int session_fail(struct store *s, const char *what, struct err *err);

/* --- reading results (text format) ------------------------------------------ */

int64_t result_int8(const PGresult *res, int row, int column);
bool result_bool(const PGresult *res, int row, int column);
/* "" when NULL */
const char *result_text(struct arena *arena, const PGresult *res, int row,
    int column);
void result_uuid(const PGresult *res, int row, int column,
    struct uuid *uuid_r);
/* bytea in hex form; NULL when NULL */
uint8_t *result_bytes(struct arena *arena, const PGresult *res, int row,
    int column, size_t *len_r);
/* "{1,2,3}" */
void result_ids(struct arena *arena, const PGresult *res, int row, int column,
    struct changed_ids *ids_r);

/* SQL of a time column as seconds, 0 when NULL. */
#define SQL_SECS(column) \
	"coalesce(extract(epoch FROM " column ")::bigint, 0)"

/* --- for several files ---------------------------------------------------------- */

void param_cursor(struct params *p, struct column *c,
    const struct cursor *cursor);
/* crypto_shorthash of a Message-ID; see thread.c. */
int64_t mid_hash(const char *message_id);

#endif
