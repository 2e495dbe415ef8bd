/*
 * login.c - one account's connection to its mail server.
 *
 * Runs in: whoever works for an account.  Blocks on the mail server, the
 * budgets, and PostgreSQL.
 */
#include "account/session.h"

#include "base/clock.h"
#include "conf/retry.h"

#include <unistd.h>

/* What clocks of two hosts, and rounding, may differ by. */
#define CLOCK_SLACK_SECS 1
#define WAIT_MAX_SECS 86400
/* Less is an answer at once. */
#define IN_LINE_MSECS 100
#define KIB ((size_t)1024)
#define MIB ((uint64_t)1024 * 1024)

/*
 * A refusal or the server's own words say when to come again; the row says it
 * to all: hot and pool children, jobs, the next owner (R-LIFE-6, R-CONN-3).
 */
static int
must_wait(struct session *s, const struct account *a, struct err *err)
{
	int64_t wait = a->next_try_secs - clock_wall_secs();

	if (wait <= CLOCK_SLACK_SECS)
		return 0;
	s->is_put_off = true;
	if (wait > WAIT_MAX_SECS)
		wait = WAIT_MAX_SECS;
	err_set(err, ERR_TEMPORARY, "the next try is due in %lld s: %s",
	    (long long)wait, a->last_error);
	err->retry_after_secs = (uint32_t)wait;
	return -1;
}

static int
read_again(struct session *s, struct account **now_r, struct err *err)
{
	int rv = session_db(s, err) == -1
		     ? -1
		     : store_account_load(s->db.store, &s->fence.account_id,
			   s->pass, now_r, err);

	session_db_rest(s);
	return rv;
}

/* Others of the account may have been refused meanwhile.  Hundreds that begin
 * at once all had to wait: they are briefed again. */
static int
must_wait_now(struct session *s, struct err *err)
{
	struct msg_briefing b;
	struct account briefed = {0}, *now = &briefed;

	if (session_is_briefed(s, &b)) {
		briefed.auth_failures = b.auth_failures;
		briefed.next_try_secs = b.next_try_secs;
		briefed.last_error = b.last_error;
	} else if (read_again(s, &now, err) == -1) {
		return -1;
	}
	s->account->auth_failures = now->auth_failures;
	return must_wait(s, now, err);
}

static int
announce_login(struct session *s, struct err *err)
{
	bool is_ours;
	int rv;

	s->is_announced = false;
	if (s->account->auth_failures == 0)
		return 0;
	rv = session_db(s, err) == -1
		 ? -1
		 : store_account_try_login(s->db.store, &s->fence,
		       LOGIN_WINDOW_SECS, &is_ours, err);
	session_db_rest(s);
	if (rv == -1)
		return -1;
	s->is_announced = is_ours;
	if (is_ours)
		return 0;
	s->is_put_off = true;
	err_set(err, ERR_TEMPORARY,
	    "refused before, and somebody else is "
	    "trying the password");
	err->retry_after_secs = LOGIN_WINDOW_SECS;
	return -1;
}

/* The row says so to the others: they may. */
static void
tell_logged_in(struct session *s)
{
	struct err err = ERR_INIT;

	if (!s->is_announced)
		return;
	s->is_announced = false;
	if (session_db(s, &err) == -1 ||
	    store_account_logged_in(s->db.store, &s->fence, &err) == -1)
		log_warn(&s->log, "not recorded that the login went well: %s",
		    err.text);
	session_db_rest(s);
}

/*
 * Where a password is wrong, all children together shall not try it more than
 * twice in two minutes (R-LIFE-6).  So one of this worker logs in to the
 * account at a time, whoever had to wait, here or for the connection, looks
 * again whether it may, and after a refusal the try is announced to the other
 * workers.
 */
static int
may_log_in(struct session *s, const char *host, uint16_t port, struct err *err)
{
	if (s->hooks->want(s->hooks->arg, RESOURCE_LOGIN, host, port,
		&s->login_permit, err) == -1)
		return -1;
	if ((clock_mono_msecs() - s->connect_mono_msecs <= IN_LINE_MSECS ||
		must_wait_now(s, err) == 0) &&
	    announce_login(s, err) == 0)
		return 0;
	s->hooks->give_back(s->hooks->arg, s->login_permit);
	return -1;
}

static int
on_want_socket(void *arg, const char *host, uint16_t port, struct err *err)
{
	struct session *s = arg;

	if (s->hooks->want(s->hooks->arg, RESOURCE_SOCKET, host, port,
		&s->socket_permit, err) == -1)
		return -1;
	if (may_log_in(s, host, port, err) == 0)
		return 0;
	s->hooks->give_back(s->hooks->arg, s->socket_permit);
	return -1;
}

static void
on_gave_socket(void *arg)
{
	struct session *s = arg;

	s->hooks->give_back(s->hooks->arg, s->socket_permit);
}

static int
session_on_may_go_on(void *arg, struct err *err)
{
	return session_may_go_on(arg, err);
}

static void
fill_params(struct session *s, struct imap_params *p)
{
	const struct account *a = s->account;
	char id[UUID_TEXT_SIZE];

	memset(p, 0, sizeof(*p));
	p->host = a->imap_host;
	p->port = a->imap_port;
	p->tls = a->imap_tls;
	p->login = a->imap_login;
	p->connect_msecs = s->conf->connect_timeout * 1000;
	p->command_msecs = s->conf->command_timeout * 1000;
	p->select_msecs = s->conf->select_timeout * 1000;
	p->max_line = (size_t)s->conf->max_line_kb * KIB;
	p->max_literal = (uint64_t)s->conf->max_message_mb * MIB;
	p->max_reply = (uint64_t)s->conf->stream_parse_mb * MIB;
	if (s->conf->rawlog_dir != NULL && s->conf->rawlog_dir[0] != '\0')
		p->rawlog_path =
		    arena_printf(s->facts, "%s/%s-%ld.log", s->conf->rawlog_dir,
			uuid_format(&s->fence.account_id, id), (long)getpid());
	p->log = &s->log;
	p->want_socket = on_want_socket;
	p->gave_socket = on_gave_socket;
	p->may_go_on = session_on_may_go_on;
	p->arg = s;
}

/* A place among the connections of the account first.  The turn to log in is
 * over, but for a refusal that is not in the row yet. */
static int
open_in_turn(
    struct session *s, const struct imap_params *params, struct err *err)
{
	int rv;

	s->connect_mono_msecs = clock_mono_msecs();
	if (s->hooks->want(s->hooks->arg, RESOURCE_ACCOUNT, params->host,
		params->port, &s->account_permit, err) == -1)
		return -1;
	session_activity(s, "connecting");
	rv = imap_open(&s->imap, params, err);
	if (rv == -1)
		s->hooks->give_back(s->hooks->arg, s->account_permit);
	else
		tell_logged_in(s);
	if (rv == 0 || err->kind != ERR_AUTH)
		s->hooks->give_back(s->hooks->arg, s->login_permit);
	return rv;
}

/* Opens for the server that the row names now, if that is the server the
 * password was given for. */
static int
unseal_secret(struct session *s, char *secret_r, size_t size, struct err *err)
{
	const struct account *a = s->account;
	const struct sealed sealed = {a->secret, a->secret_len};
	const struct seal_address address = {
	    .service = "imap",
	    .host = a->imap_host,
	    .port = a->imap_port,
	    .tls = tls_mode_name(a->imap_tls),
	    .login = a->imap_login,
	};
	struct seal_bond bond;

	seal_bond_make(&bond, &s->fence.account_id, &address);
	return s->hooks->unseal(
	    s->hooks->arg, &bond, &sealed, secret_r, size, err);
}

static int
open_remote(struct session *s, struct err *err)
{
	struct imap_params params;
	char secret[MSG_SECRET_SIZE];
	int rv;

	fill_params(s, &params);
	/* Before anything is asked for: from this the master knows whose
	 * connection that of a job will be (R-CONN-1). */
	if (unseal_secret(s, secret, sizeof(secret), err) == -1)
		return -1;
	params.password = secret;
	rv = open_in_turn(s, &params, err);
	explicit_bzero(secret, sizeof(secret));
	if (rv == -1)
		s->imap = NULL;
	return rv;
}

int
session_connect(struct session *s, struct err *err)
{
	s->is_put_off = false;
	if (s->imap != NULL)
		return 0;
	if (session_may_go_on(s, err) == -1 ||
	    must_wait(s, s->account, err) == -1)
		return -1;
	if (open_remote(s, err) == -1)
		return -1;
	s->selected_id = 0;
	s->n_connections++;
	imap_set_patience(s->imap, s->patience_msecs);
	return 0;
}

void
session_count(struct session *s)
{
	struct imap_stats stats;

	if (s->imap == NULL)
		return;
	imap_stats(s->imap, &stats);
	s->round_trips += stats.round_trips - s->round_trips_before;
	s->round_trips_before = stats.round_trips;
	s->is_slowed |= stats.is_slowed;
}

void
session_disconnect(struct session *s)
{
	if (s->imap == NULL)
		return;
	session_count(s);
	imap_close(&s->imap);
	s->selected_id = 0;
	s->hooks->give_back(s->hooks->arg, s->account_permit);
}
