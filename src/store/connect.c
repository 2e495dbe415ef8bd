/*
 * connect.c - a PostgreSQL session from its first packet on.
 *
 * Runs in: clerk, hot, pool and job children, mailherdctl.  store_open blocks
 * with a deadline; store_open_start only resolves the server's name.
 *
 * A new session costs the server tens of milliseconds.  Whoever knows early
 * that one will be needed starts it, and has other things done meanwhile.
 */
#include "store/session.h"

#include "base/clock.h"
#include "base/xmem.h"

#include <errno.h>
#include <poll.h>

#define CONNECT_SECS "10" /* unless the connection string says */

/*
 * Set at the start of the session, in its first packet:
 * client_connection_check_interval ends what a killed child has begun,
 * idle_in_transaction_session_timeout what a paused one holds.  jit would
 * cost a short session more than it can ever win; work_mem is what an insert
 * has for the full-text index when its pending list is full.
 */
#define SESSION_OPTIONS                                          \
	"-c search_path=mailherd -c statement_timeout=120000 "   \
	"-c client_connection_check_interval=500 "               \
	"-c idle_in_transaction_session_timeout=10000 "          \
	"-c jit=off -c work_mem=32MB -c timezone=UTC "           \
	"-c datestyle=ISO "                                      \
	"-c bytea_output=hex -c extra_float_digits=1 "           \
	"-c standard_conforming_strings=on"

const char *
store_session_name(char out[STORE_NAME_SIZE], const struct uuid *account_id,
    int64_t epoch)
{
	char id[UUID_TEXT_SIZE];

	snprintf(out, STORE_NAME_SIZE, "mh:%s:%lld",
	    uuid_format(account_id, id), (long long)epoch);
	return out;
}

/* Notices ("relation exists, skipping") are no news. */
static void
on_notice(void *arg, const PGresult *res)
{
	const struct store *s = arg;
	const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);

	log_debug(&s->log, "notice: %s", text != NULL ? text : "");
}

/* The operator's own options go last and win. */
static int
options_of(struct buf *out, const char *conninfo, struct err *err)
{
	PQconninfoOption *all, *o;
	char *why = NULL;

	all = PQconninfoParse(conninfo, &why);
	if (all == NULL) {
		err_set(err, ERR_CONFIG, "database: %s",
		    why != NULL ? why : "bad connection string");
		PQfreemem(why);
		return -1;
	}
	buf_adds(out, SESSION_OPTIONS);
	for (o = all; o->keyword != NULL; o++)
		if (strcmp(o->keyword, "options") == 0 && o->val != NULL)
			buf_addf(out, " %s", o->val);
	PQconninfoFree(all);
	return 0;
}

/* What the operator said, or our own; 0: wait for ever. */
static int64_t
connect_deadline(PGconn *conn)
{
	PQconninfoOption *all = PQconninfo(conn), *o;
	long secs = strtol(CONNECT_SECS, NULL, 10);

	for (o = all; o != NULL && o->keyword != NULL; o++)
		if (strcmp(o->keyword, "connect_timeout") == 0 &&
		    o->val != NULL)
			secs = strtol(o->val, NULL, 10);
	PQconninfoFree(all);
	return secs > 0 ? clock_mono_msecs() + secs * 1000 : INT64_MAX;
}

/* Is the socket as libpq wants it, within msecs? */
static bool
is_ready(struct store *s, int64_t msecs)
{
	struct pollfd pfd = { .fd = PQsocket(s->conn),
		.events = s->connecting == PGRES_POLLING_READING ? POLLIN :
								  POLLOUT };
	int n;

	if (pfd.fd == -1)
		return true; /* PQconnectPoll tells why */
	n = poll(&pfd, 1, msecs > 60000 ? 60000 : (int)msecs);
	return n > 0 || (n == -1 && errno != EINTR);
}

static bool
is_connecting(const struct store *s)
{
	return s->connecting == PGRES_POLLING_READING ||
	    s->connecting == PGRES_POLLING_WRITING;
}

static int
no_session(struct store **s, const char *why, struct err *err)
{
	err_set(err, ERR_DATABASE, "no session: %s", why);
	store_close(s);
	return -1;
}

int
store_open_start(struct store **s_r, const char *conninfo, const char *name,
    struct err *err)
{
	/* What stands before "dbname" the operator may override. */
	const char *const keys[] = { "connect_timeout", "keepalives_idle",
		"keepalives_interval", "keepalives_count", "tcp_user_timeout",
		"dbname", "application_name", "client_encoding", "options",
		NULL };
	const char *values[] = { CONNECT_SECS, "10", "5", "2", "10000",
		conninfo, name, "UTF8", NULL, NULL };
	struct buf options = BUF_INIT;
	struct store *s;

	if (options_of(&options, conninfo, err) == -1) {
		buf_release(&options);
		return -1;
	}
	values[8] = buf_str(&options);
	s = xcalloc(1, sizeof(*s));
	log_init(&s->log, LOG_STORE, "session=%s", name);
	s->conn = PQconnectStartParams(keys, values, 1);
	buf_release(&options);
	if (s->conn == NULL)
		return no_session(&s, "out of memory", err);
	if (PQstatus(s->conn) == CONNECTION_BAD)
		return no_session(&s, PQerrorMessage(s->conn), err);
	s->connecting = PGRES_POLLING_WRITING;
	/* The first packet, where the socket takes it at once. */
	while (s->connecting == PGRES_POLLING_WRITING && is_ready(s, 0))
		s->connecting = PQconnectPoll(s->conn);
	*s_r = s;
	return 0;
}

int
store_open_finish(struct store **s_p, struct err *err)
{
	struct store *s = *s_p;
	int64_t deadline, left;

	if (s->is_open)
		return 0;
	deadline = connect_deadline(s->conn);
	while (is_connecting(s)) {
		left = deadline - clock_mono_msecs();
		if (left <= 0)
			return no_session(s_p, "timeout expired", err);
		if (is_ready(s, left))
			s->connecting = PQconnectPoll(s->conn);
	}
	if (s->connecting != PGRES_POLLING_OK)
		return no_session(s_p, PQerrorMessage(s->conn), err);
	PQsetNoticeReceiver(s->conn, on_notice, s);
	PQsetnonblocking(s->conn, 1);
	s->is_open = true;
	return 0;
}

bool
store_is_open(const struct store *s)
{
	return s->is_open;
}

bool
store_is_usable(const struct store *s)
{
	return s->is_open && !s->commit.is_active &&
	    PQstatus(s->conn) == CONNECTION_OK &&
	    PQtransactionStatus(s->conn) == PQTRANS_IDLE;
}

int
store_open(struct store **s_r, const char *conninfo, const char *name,
    struct err *err)
{
	if (store_open_start(s_r, conninfo, name, err) == -1)
		return -1;
	return store_open_finish(s_r, err);
}

int
store_rename(struct store *s, const char *name, struct err *err)
{
	struct params p;

	if (!store_is_usable(s))
		return err_set(err, ERR_DATABASE, "the session is not idle");
	params_init(&p);
	param_text(&p, name);
	if (session_run(s,
		"SELECT set_config('application_name', $1, false)", &p, NULL,
		err) == -1)
		return -1;
	log_init(&s->log, LOG_STORE, "session=%s", name);
	return 0;
}

void
store_close(struct store **s)
{
	if (*s == NULL)
		return;
	PQfinish((*s)->conn);
	free(*s);
	*s = NULL;
}
