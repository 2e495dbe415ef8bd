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

/* --- one host of the connection string ------------------------------------------ */

/*
 * libpq goes from one host to the next by itself, but never from one that is
 * silent: to look at the clock it leaves to us, and then there is no way to
 * tell it.  So each host is tried by itself, with a time of its own.
 */
enum host_part { HOST_NAME, HOST_ADDRESS, HOST_PORT, HOST_PARTS };

struct target {
	struct buf options;
	struct buf parts[HOST_PARTS];
	int n_hosts;
};

static void
target_release(struct target *t)
{
	int i;

	buf_release(&t->options);
	for (i = 0; i < HOST_PARTS; i++)
		buf_release(&t->parts[i]);
}

/* Part `nth` of "a,b,c"; a list of one is for all. */
static int
target_take_part(struct target *t, enum host_part part, const char *list,
    int nth, struct err *err)
{
	const char *p;
	int n = 1;

	for (p = list; *p != '\0'; p++)
		n += *p == ',';
	if (n > 1 && t->n_hosts > 1 && n != t->n_hosts)
		return err_set(err, ERR_CONFIG, "database: the lists of hosts, "
		    "addresses and ports are not of one length: %s", list);
	for (p = list; n > 1 && nth > 0; nth--)
		p += strcspn(p, ",") + 1;
	buf_add(&t->parts[part], p, strcspn(p, ","));
	if (n == 1)
		return 0;
	t->n_hosts = n;
	if (t->parts[part].len == 0)
		return err_set(err, ERR_CONFIG,
		    "database: something is empty in the list %s", list);
	return 0;
}

/* The operator's own options go last and win. */
static int
target_take(struct target *t, const PQconninfoOption *o, int nth,
    struct err *err)
{
	static const char *const names[] = { "host", "hostaddr", "port" };
	int i;

	if (strcmp(o->keyword, "options") == 0)
		buf_addf(&t->options, " %s", o->val);
	for (i = 0; i < HOST_PARTS; i++)
		if (strcmp(o->keyword, names[i]) == 0)
			return target_take_part(t, i, o->val, nth, err);
	return 0;
}

static int
target_init(struct target *t, const char *conninfo, int nth, struct err *err)
{
	PQconninfoOption *all, *o;
	char *why = NULL;
	int rc = 0;

	*t = (struct target){ .n_hosts = 1 };
	all = PQconninfoParse(conninfo, &why);
	if (all == NULL) {
		err_set(err, ERR_CONFIG, "database: %s",
		    why != NULL ? why : "bad connection string");
		PQfreemem(why);
		return -1;
	}
	buf_adds(&t->options, SESSION_OPTIONS);
	for (o = all; rc == 0 && o->keyword != NULL; o++)
		if (o->val != NULL)
			rc = target_take(t, o, nth, err);
	PQconninfoFree(all);
	if (rc == -1)
		target_release(t);
	return rc;
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
no_session(struct store **s, struct err *err)
{
	err_set(err, ERR_DATABASE, "no session: %s", buf_str(&(*s)->why));
	store_close(s);
	return -1;
}

/* This host is not it; the reasons of all are told together. */
static void
leave_host(struct store *s, const char *why)
{
	buf_addf(&s->why, "%s%s", s->why.len > 0 ? "; " : "", why);
	PQfinish(s->conn);
	s->conn = NULL;
}

/* 1: begun; 0: nobody there. */
static int
begin_host(struct store *s, struct err *err)
{
	/* What stands before "dbname" the operator may override. */
	const char *const keys[] = { "connect_timeout", "keepalives_idle",
		"keepalives_interval", "keepalives_count", "tcp_user_timeout",
		"target_session_attrs", "dbname", "application_name",
		"client_encoding", "options", "host", "hostaddr", "port",
		NULL };
	const char *values[] = { CONNECT_SECS, "10", "5", "2", "10000",
		"read-write", s->conninfo, s->name, "UTF8", NULL, NULL, NULL,
		NULL, NULL };
	struct target t;
	int i;

	if (target_init(&t, s->conninfo, s->host, err) == -1)
		return -1;
	s->n_hosts = t.n_hosts;
	values[9] = buf_str(&t.options);
	for (i = 0; i < HOST_PARTS; i++)
		values[10 + i] = buf_str(&t.parts[i]);
	s->conn = PQconnectStartParams(keys, values, 1);
	target_release(&t);
	if (s->conn == NULL)
		return err_set(err, ERR_DATABASE, "no session: out of memory");
	if (PQstatus(s->conn) == CONNECTION_BAD) {
		leave_host(s, PQerrorMessage(s->conn));
		return 0;
	}
	s->connecting = PGRES_POLLING_WRITING;
	/* The first packet, where the socket takes it at once. */
	while (s->connecting == PGRES_POLLING_WRITING && is_ready(s, 0))
		s->connecting = PQconnectPoll(s->conn);
	return 1;
}

/* From s->host on, the next that one can begin with; 0: there is none. */
static int
begin_next(struct store *s, struct err *err)
{
	int rc = 0;

	while (rc == 0 && s->host < s->n_hosts) {
		rc = begin_host(s, err);
		s->host++;
	}
	return rc;
}

int
store_open_start(struct store **s_r, const char *conninfo, const char *name,
    struct err *err)
{
	struct store *s = xcalloc(1, sizeof(*s));
	int rc;

	log_init(&s->log, LOG_STORE, "session=%s", name);
	s->conninfo = xstrdup(conninfo);
	s->name = xstrdup(name);
	s->n_hosts = 1;
	rc = begin_next(s, err);
	if (rc == 0)
		return no_session(&s, err);
	if (rc == -1)
		store_close(&s);
	else
		*s_r = s;
	return rc == 1 ? 0 : -1;
}

static bool
is_connected(struct store *s)
{
	int64_t deadline = connect_deadline(s->conn), left;
	char why[200];

	while (is_connecting(s)) {
		left = deadline - clock_mono_msecs();
		if (left <= 0) {
			snprintf(why, sizeof(why), "%s: timeout expired",
			    PQhost(s->conn));
			leave_host(s, why);
			return false;
		}
		if (is_ready(s, left))
			s->connecting = PQconnectPoll(s->conn);
	}
	if (s->connecting == PGRES_POLLING_OK)
		return true;
	leave_host(s, PQerrorMessage(s->conn));
	return false;
}

int
store_open_finish(struct store **s_p, struct err *err)
{
	struct store *s = *s_p;
	int rc;

	if (s->is_open)
		return 0;
	while (!is_connected(s)) {
		rc = begin_next(s, err);
		if (rc == 0)
			return no_session(s_p, err);
		if (rc == -1) {
			store_close(s_p);
			return -1;
		}
	}
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
	free((*s)->conninfo);
	free((*s)->name);
	buf_release(&(*s)->why);
	free(*s);
	*s = NULL;
}
