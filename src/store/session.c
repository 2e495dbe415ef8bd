/*
 * session.c - one PostgreSQL session: send, wait, explain failures.
 *
 * Runs in: clerk, hot, pool and job children, mailherdctl.  Blocks, always
 * with a deadline.
 *
 * A transaction goes out as one pipeline and is never interrupted by work of
 * ours: between BEGIN and COMMIT there is nothing to wait for.  Big pipelines
 * are sent while input is drained, for the server stops reading when nobody
 * reads its answers.
 */
#include "store/session.h"

#include "base/clock.h"
#include "base/xmem.h"

#include <bsd/string.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

/* statement_timeout; a merge of full text is the longest thing we do. */
#define STATEMENT_MSECS 120000
/* When the server says nothing at all, not even that the time is up. */
#define SILENCE_MSECS (STATEMENT_MSECS + 30000)
#define QUERY_CANCELED "57014"

/* --- failures ------------------------------------------------------------------ */

int
session_fail(struct store *s, const char *what, struct err *err)
{
	return err_set(err, ERR_DATABASE, "%s: %s", what,
	    PQerrorMessage(s->conn));
}

/*
 * What an SQLSTATE (its beginning) means; the first that fits.  Only what says
 * that nobody can work with this server is ERR_DATABASE: whoever hears that
 * stops asking for all accounts.  A lock, a time-out, a deadlock or a full disk
 * met by one statement is the trouble of its account alone.
 */
static const struct {
	const char *state;
	enum err_kind kind;
} failures[] = {
	/* Our own, see etc/schema/002_write.sql. */
	{ "MH001", ERR_STALE },
	{ "MH002", ERR_GONE },
	/* Bad value, limit exceeded: the same will happen again. */
	{ "22", ERR_PERMANENT },
	{ "54", ERR_PERMANENT },
	/* The session is lost or about to be; a standby takes no writes. */
	{ "08", ERR_DATABASE },
	{ "25006", ERR_DATABASE },
	{ "25P03", ERR_DATABASE },
	{ "57P", ERR_DATABASE },
	{ "58", ERR_DATABASE },
	{ "", ERR_TEMPORARY },
};

static enum err_kind
failure_kind(const char *sqlstate)
{
	size_t i = 0;

	while (strncmp(sqlstate, failures[i].state,
	    strlen(failures[i].state)) != 0)
		i++;
	return failures[i].kind;
}

static int
result_fail(struct store *s, const PGresult *res, struct err *err)
{
	const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
	const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
	enum err_kind kind;

	strlcpy(s->sqlstate, state != NULL ? state : "", sizeof(s->sqlstate));
	if (text == NULL || PQstatus(s->conn) != CONNECTION_OK)
		return session_fail(s, "PostgreSQL", err);
	kind = failure_kind(s->sqlstate);
	if (kind == ERR_STALE || kind == ERR_GONE)
		return err_set(err, kind, "%s", text);
	return err_set(err, kind, "PostgreSQL: %s (%s)", text,
	    *s->sqlstate != '\0' ? s->sqlstate : "no state");
}

/* statement_timeout, or somebody's pg_cancel_backend(). */
bool
store_took_too_long(const struct store *s)
{
	return strcmp(s->sqlstate, QUERY_CANCELED) == 0;
}

/* --- sending and waiting --------------------------------------------------------- */

/* Waits for the socket; reads what is there. */
static int
wait_socket(struct store *s, short events, int64_t deadline_mono_msecs,
    struct err *err)
{
	struct pollfd pfd = { .fd = PQsocket(s->conn), .events = events };
	int64_t left;
	int n;

	if (pfd.fd == -1)
		return session_fail(s, "session lost", err);
	for (;;) {
		left = deadline_mono_msecs - clock_mono_msecs();
		if (left <= 0) {
			/* Whatever comes later must not be taken for the
			 * answer to something else. */
			shutdown(pfd.fd, SHUT_RDWR);
			return err_set(err, ERR_DATABASE,
			    "PostgreSQL does not answer");
		}
		n = poll(&pfd, 1, left > 60000 ? 60000 : (int)left);
		if (n == -1 && errno != EINTR)
			return err_set(err, ERR_DATABASE, "poll: %s",
			    strerror(errno));
		if (n > 0)
			break;
	}
	if ((pfd.revents & ~POLLOUT) != 0 && PQconsumeInput(s->conn) == 0)
		return session_fail(s, "session lost", err);
	return 0;
}

static int
pg_flush(struct store *s, struct err *err)
{
	int64_t deadline = clock_mono_msecs() + SILENCE_MSECS;
	int rc;

	while ((rc = PQflush(s->conn)) == 1)
		if (wait_socket(s, POLLIN | POLLOUT, deadline, err) == -1)
			return -1;
	return rc == 0 ? 0 : session_fail(s, "session lost", err);
}

int
session_result(struct store *s, PGresult **res_r, struct err *err)
{
	int64_t deadline = clock_mono_msecs() + SILENCE_MSECS;

	while (PQisBusy(s->conn))
		if (wait_socket(s, POLLIN, deadline, err) == -1)
			return -1;
	*res_r = PQgetResult(s->conn);
	return 0;
}

bool
session_has_result(struct store *s)
{
	return PQconsumeInput(s->conn) == 0 || !PQisBusy(s->conn);
}

int
session_send(struct store *s, const char *sql, const struct params *p,
    struct err *err)
{
	static const struct params none;

	if (p == NULL)
		p = &none;
	if (PQsendQueryParams(s->conn, sql, p->n, p->types, p->values,
	    p->lengths, p->formats, 0) == 0)
		return session_fail(s, "not sent", err);
	return 0;
}

static bool
is_good(const PGresult *res)
{
	ExecStatusType status = PQresultStatus(res);

	return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

/* A transaction that failed half-way is still open. */
static void
roll_back(struct store *s)
{
	PGresult *res;
	struct err ignored = ERR_INIT;

	if (PQtransactionStatus(s->conn) == PQTRANS_IDLE ||
	    PQsendQuery(s->conn, "ROLLBACK") == 0 ||
	    pg_flush(s, &ignored) == -1)
		return;
	while (session_result(s, &res, &ignored) == 0 && res != NULL)
		PQclear(res);
}

/* Nobody may talk into a commit that is in flight; whoever forgot to wait
 * for it, on an error path, loses its events but not its rows. */
static void
finish_commit(struct store *s)
{
	struct commit_result result;
	struct err failure = ERR_INIT;
	struct arena *arena;

	if (!s->commit.is_active)
		return;
	arena = arena_new("forgotten commit");
	if (store_commit_wait(s, arena, &result, &failure) == -1)
		log_warn(&s->log, "commit failed: %s", failure.text);
	arena_free(&arena);
}

int
session_run(struct store *s, const char *sql, const struct params *p,
    PGresult **res_r, struct err *err)
{
	PGresult *res, *kept = NULL;
	int rc = 0;

	finish_commit(s);
	s->sqlstate[0] = '\0';
	if (session_send(s, sql, p, err) == -1 || pg_flush(s, err) == -1)
		return -1;
	for (;;) {
		if (session_result(s, &res, err) == -1) {
			PQclear(kept);
			return -1;
		}
		if (res == NULL)
			break;
		if (rc == 0 && !is_good(res))
			rc = result_fail(s, res, err);
		PQclear(kept);
		kept = res;
	}
	if (rc == 0 && kept == NULL)
		rc = session_fail(s, "no answer", err);
	if (rc == -1 || res_r == NULL)
		PQclear(kept);
	else
		*res_r = kept;
	return rc;
}

/* --- fenced transactions ------------------------------------------------------------ */

/*
 * FOR NO KEY UPDATE, for weaker locks let a successor pass (storage tests);
 * the division by zero fails the pipeline as a whole when the epoch is old,
 * somebody else's, or the account is gone.
 */
#define FENCE_SQL                                                         \
	"SELECT 1/count(*) FROM (SELECT 1 FROM account_fence "            \
	"WHERE account_id = $1 AND epoch = $2 AND owner = $3 "            \
	"FOR NO KEY UPDATE) f"
#define DIVISION_BY_ZERO "22012"

int
session_begin_fenced(struct store *s, const struct fence *fence,
    struct err *err)
{
	struct params p;

	finish_commit(s);
	s->sqlstate[0] = '\0';
	if (PQenterPipelineMode(s->conn) == 0)
		return session_fail(s, "no pipeline", err);
	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_int8(&p, fence->epoch);
	param_text(&p, fence->owner);
	if (session_send(s, "BEGIN", NULL, err) == -1 ||
	    session_send(s, FENCE_SQL, &p, err) == -1)
		return -1;
	return 0;
}

int
session_end(struct store *s, struct err *err)
{
	if (session_send(s, "COMMIT", NULL, err) == -1)
		return -1;
	if (PQpipelineSync(s->conn) == 0)
		return session_fail(s, "not sent", err);
	return pg_flush(s, err);
}

/*
 * One command's result, and the NULL that ends it.  The first failure is
 * described; what follows it is PGRES_PIPELINE_ABORTED and no news.
 */
static int
collect_command(struct store *s, bool is_fence, PGresult **res_r,
    bool *has_failed, struct err *err)
{
	PGresult *res, *end = NULL;
	const char *state;

	if (session_result(s, &res, err) == -1)
		return -1;
	if (res == NULL)
		return session_fail(s, "session lost", err);
	if (!is_good(res) && !*has_failed) {
		*has_failed = true;
		state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
		if (is_fence && state != NULL &&
		    strcmp(state, DIVISION_BY_ZERO) == 0)
			err_set(err, ERR_FENCED,
			    "another owner has taken over");
		else
			result_fail(s, res, err);
	}
	*res_r = res;
	if (PQstatus(s->conn) != CONNECTION_OK)
		return *has_failed ? -1 : session_fail(s, "session lost", err);
	if (session_result(s, &end, *has_failed ? &(struct err)ERR_INIT : err)
	    == -1)
		return -1;
	PQclear(end);
	return 0;
}

/* results[i] is that of statement i after the fence, also when this fails. */
int
session_collect_all(struct store *s, size_t n, PGresult **results,
    struct err *err)
{
	bool has_failed = false, is_committed = false;
	PGresult *res;
	size_t i;
	int rc;

	for (i = 0; i < n + 3; i++) {
		res = NULL;
		rc = collect_command(s, i == 1, &res, &has_failed, err);
		if (rc == 0 && i == n + 2)
			is_committed = is_good(res) &&
			    strcmp(PQcmdStatus(res), "COMMIT") == 0;
		if (i >= 2 && i < n + 2)
			results[i - 2] = res;
		else
			PQclear(res);
		if (rc == -1)
			return -1;
	}
	/* The sync; only now it is known that the server is done. */
	if (session_result(s, &res, has_failed ? &(struct err)ERR_INIT : err)
	    == -1)
		return -1;
	PQclear(res);
	PQexitPipelineMode(s->conn);
	if (has_failed)
		roll_back(s);
	else if (!is_committed)
		has_failed = err_set(err, ERR_DATABASE, "not committed") == -1;
	return has_failed ? -1 : 0;
}

int
session_fenced(struct store *s, const struct fence *fence, const char *sql,
    const struct params *p, PGresult **res_r, struct err *err)
{
	PGresult *res = NULL;
	int rc;

	if (session_begin_fenced(s, fence, err) == -1 ||
	    session_send(s, sql, p, err) == -1 ||
	    session_end(s, err) == -1)
		return -1;
	rc = session_collect_all(s, 1, &res, err);
	if (rc == -1 || res_r == NULL)
		PQclear(res);
	else
		*res_r = res;
	return rc;
}

/* --- reading results ------------------------------------------------------------------ */

int64_t
result_int8(const PGresult *res, int row, int column)
{
	return strtoll(PQgetvalue(res, row, column), NULL, 10);
}

bool
result_bool(const PGresult *res, int row, int column)
{
	return PQgetvalue(res, row, column)[0] == 't';
}

const char *
result_text(struct arena *arena, const PGresult *res, int row, int column)
{
	return arena_strdup(arena, PQgetvalue(res, row, column));
}

void
result_uuid(const PGresult *res, int row, int column, struct uuid *uuid_r)
{
	if (uuid_parse(PQgetvalue(res, row, column), uuid_r) == -1)
		memset(uuid_r, 0, sizeof(*uuid_r));
}

static unsigned
hex_digit(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10) & 15;
}

uint8_t *
result_bytes(struct arena *arena, const PGresult *res, int row, int column,
    size_t *len_r)
{
	const char *hex = PQgetvalue(res, row, column);
	size_t i, len = (size_t)PQgetlength(res, row, column);
	uint8_t *bytes;

	*len_r = 0;
	if (PQgetisnull(res, row, column) || len < 2)
		return NULL;
	hex += 2; /* \x */
	len = (len - 2) / 2;
	bytes = arena_alloc(arena, len + 1);
	for (i = 0; i < len; i++)
		bytes[i] = (uint8_t)(hex_digit(hex[2 * i]) << 4 |
		    hex_digit(hex[2 * i + 1]));
	*len_r = len;
	return bytes;
}

void
result_ids(struct arena *arena, const PGresult *res, int row, int column,
    struct changed_ids *ids_r)
{
	const char *p = PQgetvalue(res, row, column);
	size_t n = 1;
	const char *c;
	char *end;

	ids_r->ids = NULL;
	ids_r->n = 0;
	for (c = p; *c != '\0'; c++)
		n += *c == ',';
	ids_r->ids = ARENA_ARRAY(arena, int64_t, n);
	for (p += *p == '{'; *p != '\0' && *p != '}'; p = end + (*end == ',')) {
		int64_t id = strtoll(p, &end, 10);

		if (end == p)
			break;
		ids_r->ids[ids_r->n++] = id;
	}
}
