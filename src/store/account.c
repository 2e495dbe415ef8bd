/*
 * account.c - users and accounts: settings, state, fence, outcome of a pass.
 *
 * Runs in: clerk, hot, pool and job children, mailherdctl.  Blocks.
 *
 * A predecessor stopped in the middle of a transaction holds its account's
 * fence for ever, and no time limit of the server ends it.  Who raises the
 * fence therefore waits 200 ms, then ends the predecessor's session.  Where
 * there is none to be ended, somebody else holds the row (a person with psql, a
 * backup): that is told at once, and other accounts are gone on with.
 */
#include "store/session.h"

#include <bsd/string.h>

#define LOCK_NOT_AVAILABLE "55P03"
#define UNIQUE_VIOLATION "23505"
#define TAKE_OVER_TRIES 6

/* --- finding ----------------------------------------------------------------- */

static int
find_one(struct store *s, const char *what, const char *sql,
    const char *id_or_email, struct uuid *id_r, struct err *err)
{
	struct buf ids = BUF_INIT;
	struct params p;
	PGresult *res;
	int i, n;

	params_init(&p);
	param_text(&p, id_or_email);
	if (session_run(s, sql, &p, &res, err) == -1)
		return -1;
	n = PQntuples(res);
	for (i = 0; i < n; i++)
		buf_addf(&ids, " %s", PQgetvalue(res, i, 0));
	if (n == 1)
		result_uuid(res, 0, 0, id_r);
	PQclear(res);
	if (n == 0)
		err_set(err, ERR_GONE, "no such %s: %s", what, id_or_email);
	else if (n > 1)
		err_set(err, ERR_PERMANENT, "%s is the address of several "
		    "%ss; give one of the ids:%s", id_or_email, what,
		    buf_str(&ids));
	buf_release(&ids);
	return n == 1 ? 0 : -1;
}

int
store_account_find(struct store *s, const char *id_or_email,
    struct uuid *id_r, struct err *err)
{
	struct uuid id;

	if (uuid_parse(id_or_email, &id) == 0)
		return find_one(s, "account", "SELECT id FROM accounts "
		    "WHERE id = $1::uuid", id_or_email, id_r, err);
	return find_one(s, "account", "SELECT id FROM accounts "
	    "WHERE lower(email) = lower($1) AND state <> 'deleted' "
	    "ORDER BY id LIMIT 5", id_or_email, id_r, err);
}

int
store_user_find(struct store *s, const char *id_or_email, struct uuid *id_r,
    struct err *err)
{
	struct uuid id;

	if (uuid_parse(id_or_email, &id) == 0)
		return find_one(s, "user", "SELECT id FROM users "
		    "WHERE id = $1::uuid AND deleted_at IS NULL",
		    id_or_email, id_r, err);
	return find_one(s, "user", "SELECT id FROM users "
	    "WHERE lower(email) = lower($1) AND deleted_at IS NULL",
	    id_or_email, id_r, err);
}

/* --- loading ------------------------------------------------------------------- */

#define ACCOUNT_COLUMNS                                                      \
	"a.id, a.user_id, a.email, a.name, a.state, a.state_reason, "        \
	SQL_SECS("a.state_since") ", a.imap_host, a.imap_login, "            \
	"a.imap_port, a.imap_tls, a.smtp_host, a.smtp_login, a.smtp_port, "  \
	"a.smtp_tls, a.auth, a.secret, f.epoch, f.owner, "                   \
	SQL_SECS("a.last_mail_at") ", " SQL_SECS("a.last_sync_at") ", "      \
	SQL_SECS("u.last_active_at") ", " SQL_SECS("a.next_try_at") ", "     \
	"a.auth_failures, a.last_error, a.smtp_secret "

static void
read_account(const PGresult *res, struct arena *arena, struct account *a)
{
	result_uuid(res, 0, 0, &a->id);
	result_uuid(res, 0, 1, &a->user_id);
	a->email = result_text(arena, res, 0, 2);
	a->name = result_text(arena, res, 0, 3);
	if (account_state_parse(PQgetvalue(res, 0, 4), &a->state) == -1)
		a->state = ACCOUNT_ERROR;
	a->state_reason = result_text(arena, res, 0, 5);
	a->state_since_secs = result_int8(res, 0, 6);
	a->imap_host = result_text(arena, res, 0, 7);
	a->imap_login = result_text(arena, res, 0, 8);
	a->imap_port = (uint16_t)result_int8(res, 0, 9);
	/* Never below what was meant: a word we do not know is "tls". */
	if (tls_mode_parse(PQgetvalue(res, 0, 10), &a->imap_tls) == -1)
		a->imap_tls = TLS_IMPLICIT;
	a->smtp_host = result_text(arena, res, 0, 11);
	a->smtp_login = result_text(arena, res, 0, 12);
	a->smtp_port = (uint16_t)result_int8(res, 0, 13);
	if (tls_mode_parse(PQgetvalue(res, 0, 14), &a->smtp_tls) == -1)
		a->smtp_tls = TLS_IMPLICIT;
	a->auth = result_text(arena, res, 0, 15);
	a->secret = result_bytes(arena, res, 0, 16, &a->secret_len);
	a->epoch = result_int8(res, 0, 17);
	a->owner = result_text(arena, res, 0, 18);
	a->last_mail_secs = result_int8(res, 0, 19);
	a->last_sync_secs = result_int8(res, 0, 20);
	a->last_active_secs = result_int8(res, 0, 21);
	a->next_try_secs = result_int8(res, 0, 22);
	a->auth_failures = (unsigned)result_int8(res, 0, 23);
	a->last_error = result_text(arena, res, 0, 24);
	a->smtp_secret = result_bytes(arena, res, 0, 25, &a->smtp_secret_len);
}

int
store_account_load(struct store *s, const struct uuid *id,
    struct arena *arena, struct account **account_r, struct err *err)
{
	char text[UUID_TEXT_SIZE];
	struct params p;
	PGresult *res;

	params_init(&p);
	param_uuid(&p, id);
	if (session_run(s, "SELECT " ACCOUNT_COLUMNS "FROM accounts a "
	    "JOIN account_fence f ON f.account_id = a.id "
	    "JOIN users u ON u.id = a.user_id WHERE a.id = $1", &p, &res,
	    err) == -1)
		return -1;
	if (PQntuples(res) == 0) {
		PQclear(res);
		return err_set(err, ERR_GONE, "no such account: %s",
		    uuid_format(id, text));
	}
	*account_r = ARENA_NEW(arena, struct account);
	read_account(res, arena, *account_r);
	PQclear(res);
	return 0;
}

/* --- the fence --- */

void
fence_init(struct fence *fence, const struct uuid *account_id, int64_t epoch,
    const char *owner)
{
	fence->account_id = *account_id;
	fence->epoch = epoch;
	strlcpy(fence->owner, owner, sizeof(fence->owner));
}

bool
fence_is_of(const struct fence *fence, const struct account *account)
{
	return account->epoch == fence->epoch &&
	    strcmp(account->owner, fence->owner) == 0;
}

/* --- raising the fence ------------------------------------------------------------ */

/* Ends the sessions named for the account but ours; how many. */
static int
account_end_sessions(struct store *s, const struct uuid *id, int *n_r,
    struct err *err)
{
	char text[UUID_TEXT_SIZE];
	struct params p;
	PGresult *res;

	params_init(&p);
	param_text(&p, uuid_format(id, text));
	if (session_run(s, "SELECT pg_terminate_backend(pid, 200) "
	    "FROM pg_stat_activity WHERE datname = current_database() "
	    "AND application_name LIKE 'mh:' || $1 || ':%' "
	    "AND pid <> pg_backend_pid()", &p, &res, err) == -1)
		return -1;
	*n_r = PQntuples(res);
	if (*n_r > 0)
		log_info(&s->log, "predecessor stuck: account_id=%s "
		    "sessions_ended=%d", text, *n_r);
	PQclear(res);
	return 0;
}

/* Sessions of others that are in the middle of a transaction in which they
 * locked fences, as far as PostgreSQL shows: "; held by PID 123 (psql)". */
static int
account_lock_held(struct store *s, struct err *err)
{
	struct err ignored = ERR_INIT;
	PGresult *res;

	err_set(err, ERR_TEMPORARY, "the account's row in account_fence is "
	    "locked by another PostgreSQL session");
	if (session_run(s, "SELECT string_agg(format('PID %s (%s, %s)', a.pid, "
	    "coalesce(nullif(a.application_name, ''), a.usename), a.state), "
	    "', ') FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid() "
	    "AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid "
	    "AND l.relation = 'account_fence'::regclass "
	    "AND l.mode <> 'AccessShareLock') "
	    "AND a.xact_start < now() - interval '100 ms'", NULL, &res,
	    &ignored) == -1)
		return -1;
	if (PQgetlength(res, 0, 0) > 0)
		err_set(err, ERR_TEMPORARY, "the account's row in "
		    "account_fence is locked by another PostgreSQL session: "
		    "%s", PQgetvalue(res, 0, 0));
	PQclear(res);
	return -1;
}

/* As session_run, for statements that lock the fence of account `id`. */
static int
run_over(struct store *s, const struct uuid *id, const char *sql,
    const struct params *p, PGresult **res_r, struct err *err)
{
	struct err failure = ERR_INIT;
	int i, n_ended = 1;

	for (i = 0; n_ended > 0 && i < TAKE_OVER_TRIES; i++) {
		if (session_run(s, sql, p, res_r, &failure) == 0)
			return 0;
		if (strcmp(s->sqlstate, LOCK_NOT_AVAILABLE) != 0 ||
		    PQstatus(s->conn) != CONNECTION_OK) {
			*err = failure;
			return -1;
		}
		if (account_end_sessions(s, id, &n_ended, err) == -1)
			return -1;
	}
	return account_lock_held(s, err);
}

int
store_account_take_over(struct store *s, const struct uuid *id,
    const char *owner, struct arena *arena, struct account **account_r,
    struct err *err)
{
	struct params p;
	PGresult *res;
	int64_t epoch;

	params_init(&p);
	param_uuid(&p, id);
	param_text(&p, owner);
	if (run_over(s, id, "SELECT account_take_over($1, $2)", &p, &res,
	    err) == -1)
		return -1;
	epoch = result_int8(res, 0, 0);
	PQclear(res);
	/* Read only now: whoever ended `live` before us is seen, whoever does
	 * it after us raises the epoch again. */
	if (store_account_load(s, id, arena, account_r, err) == -1)
		return -1;
	(*account_r)->epoch = epoch;
	(*account_r)->owner = arena_strdup(arena, owner);
	return 0;
}

static void
param_states(struct params *p, struct column *c, unsigned expect)
{
	unsigned state;

	column_init(c, PG_TEXT);
	for (state = ACCOUNT_NEW; state <= ACCOUNT_DELETED; state++)
		if (expect & (1u << state))
			column_text(c, account_state_name(state));
	param_column(p, c);
}

int
store_account_set_state(struct store *s, const struct uuid *id,
    unsigned expect, enum account_state state, const char *reason,
    bool *changed_r, struct err *err)
{
	struct column states;
	struct params p;
	PGresult *res;
	int rc;

	params_init(&p);
	param_uuid(&p, id);
	param_states(&p, &states, expect);
	param_text(&p, account_state_name(state));
	param_text(&p, reason != NULL ? reason : "");
	rc = run_over(s, id, "SELECT account_set_state($1, $2, $3, $4)", &p,
	    &res, err);
	column_release(&states);
	if (rc == -1)
		return -1;
	if (changed_r != NULL)
		*changed_r = result_bool(res, 0, 0);
	PQclear(res);
	return 0;
}

int
store_account_enable(struct store *s, const struct uuid *id,
    enum account_state *state_r, struct uuid *job_id_r, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_uuid(&p, id);
	if (run_over(s, id, "SELECT state, job FROM account_enable($1)", &p,
	    &res, err) == -1)
		return -1;
	if (account_state_parse(PQgetvalue(res, 0, 0), state_r) == -1)
		*state_r = ACCOUNT_ERROR;
	result_uuid(res, 0, 1, job_id_r);
	PQclear(res);
	return 0;
}

int
store_account_live(struct store *s, const struct fence *fence,
    bool *changed_r, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_uuid(&p, &fence->account_id);
	if (session_fenced(s, fence, "SELECT account_set_state($1, "
	    "ARRAY['bootstrapping'], 'live', '')", &p, &res, err) == -1)
		return -1;
	*changed_r = result_bool(res, 0, 0);
	PQclear(res);
	return 0;
}

/* --- outcome of a pass --------------------------------------------------------------- */

int
store_account_synced(struct store *s, const struct fence *fence,
    int64_t last_mail_secs, struct err *err)
{
	struct params p;

	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_time(&p, last_mail_secs);
	return session_fenced(s, fence, "UPDATE accounts SET "
	    "last_sync_at = now(), last_error = '', auth_failures = 0, "
	    "next_try_at = NULL, last_mail_at = greatest(last_mail_at, $2) "
	    "WHERE id = $1", &p, NULL, err);
}

int
store_account_failed(struct store *s, const struct fence *fence,
    const struct err *failure, int64_t next_try_secs, unsigned auth_refusals,
    bool *became_error_r, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_text(&p, failure->text);
	param_bool(&p, failure->kind == ERR_AUTH);
	param_time(&p, next_try_secs);
	param_int4(&p, (int32_t)auth_refusals);
	if (session_fenced(s, fence,
	    "SELECT account_failed($1, $2, $3, $4, $5)", &p, &res, err) == -1)
		return -1;
	*became_error_r = result_bool(res, 0, 0);
	PQclear(res);
	return 0;
}

int
store_account_try_login(struct store *s, const struct fence *fence,
    int64_t secs, bool *is_ours_r, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_int8(&p, secs);
	if (session_fenced(s, fence, "UPDATE accounts SET "
	    "next_try_at = now() + $2 * interval '1 second' WHERE id = $1 "
	    "AND coalesce(next_try_at, '-infinity') <= "
	    "now() + interval '1 second' RETURNING id", &p, &res, err) == -1)
		return -1;
	*is_ours_r = PQntuples(res) > 0;
	PQclear(res);
	return 0;
}

int
store_account_logged_in(struct store *s, const struct fence *fence,
    struct err *err)
{
	struct params p;

	params_init(&p);
	param_uuid(&p, &fence->account_id);
	return session_fenced(s, fence, "UPDATE accounts SET "
	    "auth_failures = 0, next_try_at = NULL WHERE id = $1", &p, NULL,
	    err);
}

/* --- users and accounts: changes by ctl ------------------------------------------------- */

int
store_user_add(struct store *s, const char *email, const char *name,
    int64_t quota_bytes, struct uuid *id_r, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_text(&p, email);
	param_text(&p, name != NULL ? name : "");
	param_int8(&p, quota_bytes > 0 ? quota_bytes :
	    (int64_t)5 * 1024 * 1024 * 1024);
	if (session_run(s, "INSERT INTO users (email, name, quota_bytes) "
	    "VALUES ($1, $2, $3) RETURNING id", &p, &res, err) == -1) {
		if (strcmp(s->sqlstate, UNIQUE_VIOLATION) == 0)
			err_set(err, ERR_PERMANENT,
			    "there is a user %s already", email);
		return -1;
	}
	result_uuid(res, 0, 0, id_r);
	PQclear(res);
	return 0;
}

int
store_user_delete(struct store *s, const struct uuid *id, struct err *err)
{
	struct arena *arena = arena_new("user delete");
	struct uuid *accounts;
	struct params p;
	size_t i, n;
	int rc;

	/* One by one first: each may have to end a stuck session. */
	rc = store_user_accounts(s, id, arena, &accounts, &n, err);
	for (i = 0; rc == 0 && i < n; i++)
		rc = store_account_set_state(s, &accounts[i], 0,
		    ACCOUNT_DELETED, "user deleted", NULL, err);
	params_init(&p);
	param_uuid(&p, id);
	if (rc == 0)
		rc = session_run(s, "SELECT user_delete($1)", &p, NULL, err);
	arena_free(&arena);
	return rc;
}

int
store_user_accounts(struct store *s, const struct uuid *user_id,
    struct arena *arena, struct uuid **ids_r, size_t *n_r, struct err *err)
{
	struct params p;
	PGresult *res;
	int i;

	params_init(&p);
	param_uuid(&p, user_id);
	if (session_run(s, "SELECT id FROM accounts WHERE user_id = $1 "
	    "AND state <> 'deleted' ORDER BY created_at, id", &p, &res,
	    err) == -1)
		return -1;
	*n_r = (size_t)PQntuples(res);
	*ids_r = ARENA_ARRAY(arena, struct uuid, *n_r);
	for (i = 0; i < (int)*n_r; i++)
		result_uuid(res, i, 0, &(*ids_r)[i]);
	PQclear(res);
	return 0;
}

int
store_user_active(struct store *s, const struct uuid *id, struct err *err)
{
	struct params p;
	PGresult *res;
	int n;

	params_init(&p);
	param_uuid(&p, id);
	if (session_run(s, "UPDATE users SET last_active_at = now() "
	    "WHERE id = $1 AND deleted_at IS NULL RETURNING id", &p, &res,
	    err) == -1)
		return -1;
	n = PQntuples(res);
	PQclear(res);
	return n == 1 ? 0 : err_set(err, ERR_GONE, "no such user");
}

static void
param_settings(struct params *p, const struct account *a)
{
	param_text(p, a->email);
	param_text(p, a->name != NULL ? a->name : "");
	param_text(p, a->imap_host);
	param_int4(p, a->imap_port);
	param_text(p, tls_mode_name(a->imap_tls));
	param_text(p, a->imap_login);
	param_text(p, a->smtp_host != NULL ? a->smtp_host : "");
	param_int4(p, a->smtp_port);
	param_text(p, tls_mode_name(a->smtp_tls));
	param_text(p, a->smtp_login != NULL ? a->smtp_login : "");
	param_text(p, a->auth != NULL ? a->auth : "password");
	param_bytes(p, a->secret, a->secret_len);
	param_bytes(p, a->smtp_secret, a->smtp_secret_len);
}

#define SETTINGS_COLUMNS                                                   \
	"email, name, imap_host, imap_port, imap_tls, imap_login, "        \
	"smtp_host, smtp_port, smtp_tls, smtp_login, auth, secret, "       \
	"smtp_secret"

int
store_account_duplicate(struct store *s, const struct account *a,
    struct uuid *id_r, bool *is_found_r, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_uuid(&p, &a->user_id);
	param_text(&p, a->imap_host);
	param_text(&p, a->imap_login);
	if (session_run(s, "SELECT id FROM accounts WHERE user_id = $1 "
	    "AND lower(imap_host) = lower($2) AND imap_login = $3 "
	    "AND state <> 'deleted' ORDER BY created_at LIMIT 1", &p, &res,
	    err) == -1)
		return -1;
	*is_found_r = PQntuples(res) > 0;
	if (*is_found_r)
		result_uuid(res, 0, 0, id_r);
	PQclear(res);
	return 0;
}

/* One statement and so one transaction: account, fence and job. */
int
store_account_add(struct store *s, const struct account *a,
    struct uuid *job_id_r, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_uuid(&p, &a->id);
	param_uuid(&p, &a->user_id);
	param_settings(&p, a);
	if (session_run(s, "WITH a AS (INSERT INTO accounts (id, user_id, "
	    SETTINGS_COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, "
	    "$10, $11, $12, $13, $14, $15) RETURNING id), "
	    "f AS (INSERT INTO account_fence (account_id) "
	    "SELECT id FROM a) "
	    "SELECT job_add('bulk', 'sync_bootstrap_account', id, "
	    "jsonb_build_object('account_id', id)) FROM a", &p, &res,
	    err) == -1)
		return -1;
	result_uuid(res, 0, 0, job_id_r);
	PQclear(res);
	return 0;
}

#define SETTINGS_MARK "md5(ROW(" SETTINGS_COLUMNS ")::text)"

int
store_account_mark(struct store *s, const struct uuid *id,
    struct arena *arena, char **mark_r, struct err *err)
{
	char text[UUID_TEXT_SIZE];
	struct params p;
	PGresult *res;
	int n;

	params_init(&p);
	param_uuid(&p, id);
	if (session_run(s, "SELECT " SETTINGS_MARK " FROM accounts "
	    "WHERE id = $1", &p, &res, err) == -1)
		return -1;
	n = PQntuples(res);
	if (n == 1)
		*mark_r = arena_strdup(arena, PQgetvalue(res, 0, 0));
	PQclear(res);
	return n == 1 ? 0 : err_set(err, ERR_GONE, "no such account: %s",
	    uuid_format(id, text));
}

int
store_account_update(struct store *s, const struct account *a,
    const char *mark, struct err *err)
{
	char text[UUID_TEXT_SIZE];
	struct params p;
	PGresult *res;
	int n;

	params_init(&p);
	param_uuid(&p, &a->id);
	param_settings(&p, a);
	param_text(&p, mark);
	if (session_run(s, "UPDATE accounts SET (" SETTINGS_COLUMNS ") = "
	    "ROW($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) "
	    "WHERE id = $1 AND state <> 'deleted' AND " SETTINGS_MARK
	    " = $15 RETURNING id", &p, &res, err) == -1)
		return -1;
	n = PQntuples(res);
	PQclear(res);
	return n == 1 ? 0 : err_set(err, ERR_TEMPORARY, "account %s was "
	    "changed or deleted by somebody else at the same moment; look "
	    "at it and try again", uuid_format(&a->id, text));
}
