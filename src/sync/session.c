/*
 * session.c - the connections and facts of one account's work.
 *
 * Runs in: whoever syncs.  Blocks on PostgreSQL, the mail server and the
 * budgets.
 *
 * The idea: PostgreSQL is borrowed (session_db, session_db_rest), so that a
 * slow mail server holds no database session; the mail connection is held for
 * the life of the pass.  A session costs PostgreSQL tens of milliseconds, so
 * whoever polls account after account lets the next one go on with it
 * (hooks->kept).
 */
#include "sync/session.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/xmem.h"

#include <stdarg.h>
#include <unistd.h>

/* What clocks of two hosts, and rounding, may differ by. */
#define CLOCK_SLACK_SECS 1
#define WAIT_MAX_SECS 86400
/* Less is an answer at once. */
#define IN_LINE_MSECS 100
#define KIB ((size_t)1024)
#define MIB ((uint64_t)1024 * 1024)

struct session *
sync_open(const struct conf *conf, const struct sync_hooks *hooks,
    const struct fence *fence)
{
	struct session *s = xcalloc(1, sizeof(*s));
	char id[UUID_TEXT_SIZE];

	s->conf = conf;
	s->hooks = hooks;
	s->fence = *fence;
	s->facts = arena_new("account facts");
	s->pass = arena_new("sync pass");
	log_init(&s->log, LOG_SYNC, "account_id=%s",
	    uuid_format(&fence->account_id, id));
	return s;
}

void
sync_close(struct session **s)
{
	if (*s == NULL)
		return;
	session_note(*s, RISK_NONE, 0, 0, 0);
	session_disconnect(*s);
	session_db_rest(*s);
	if ((*s)->blobs != NULL)
		blob_writer_free(&(*s)->blobs);
	arena_free(&(*s)->pass);
	arena_free(&(*s)->facts);
	free(*s);
	*s = NULL;
}

const struct account *
sync_account(const struct session *s)
{
	return s->account;
}

void
sync_totals_take(struct session *s, struct sync_totals *totals_r)
{
	struct imap_stats stats;

	if (s->imap != NULL) {
		imap_stats(s->imap, &stats);
		s->totals.round_trips += stats.round_trips -
		    s->round_trips_before;
		s->round_trips_before = stats.round_trips;
		s->totals.is_slowed |= stats.is_slowed;
	}
	*totals_r = s->totals;
	memset(&s->totals, 0, sizeof(s->totals));
}

/* --- PostgreSQL ---------------------------------------------------------- */

static int
begin_db(struct session *s, struct err *err)
{
	char name[STORE_NAME_SIZE];

	store_session_name(name, &s->fence.account_id, s->fence.epoch);
	return store_open_start(&s->db, s->conf->database, name, err);
}

static void
close_db(struct session *s)
{
	store_close(&s->db);
	s->hooks->give_back(s->hooks->arg, s->db_permit);
}

/* Gives the permit back where there is no session. */
static int
is_db_there(struct session *s, int rv)
{
	if (rv == -1) {
		s->db = NULL;
		s->hooks->give_back(s->hooks->arg, s->db_permit);
	}
	return rv;
}

/* What the last account left, under a name that our successor knows. */
static bool
take_kept(struct session *s)
{
	struct kept_db *kept = s->hooks->kept;
	char name[STORE_NAME_SIZE];
	struct err gone = ERR_INIT;

	if (kept == NULL || kept->db == NULL)
		return false;
	s->db = kept->db;
	s->db_permit = kept->permit;
	kept->db = NULL;
	store_session_name(name, &s->fence.account_id, s->fence.epoch);
	if (store_rename(s->db, name, &gone) == 0)
		return true;
	close_db(s);
	return false;
}

static bool
session_keep(struct session *s)
{
	struct kept_db *kept = s->hooks->kept;
	struct err gone = ERR_INIT;

	if (kept == NULL || kept->db != NULL ||
	    store_rename(s->db, "mailherd pool", &gone) == -1)
		return false;
	*kept = (struct kept_db){ s->db, s->db_permit };
	s->db = NULL;
	return true;
}

bool
session_must_yield(const struct session *s)
{
	return s->hooks->must_yield != NULL &&
	    s->hooks->must_yield(s->hooks->arg);
}

int
session_db_start(struct session *s, struct err *err)
{
	if (s->db != NULL)
		return 0;
	if (session_may_go_on(s, err) == -1)
		return -1;
	if (take_kept(s))
		return 0;
	if (s->hooks->want(s->hooks->arg, RESOURCE_DATABASE, "", 0,
		&s->db_permit, err) == -1)
		return -1;
	return is_db_there(s, begin_db(s, err));
}

static int
finish_db(struct session *s, struct err *err)
{
	if (is_db_there(s, store_open_finish(&s->db, err)) == -1)
		return -1;
	if (store_check(s->db, err) == 0)
		return 0;
	close_db(s);
	return -1;
}

int
session_db(struct session *s, struct err *err)
{
	struct err given_up = ERR_INIT;
	bool was_started = s->db != NULL;

	if (session_db_start(s, err) == -1)
		return -1;
	if (store_is_open(s->db))
		return 0;
	if (!was_started)
		return finish_db(s, err);
	if (store_open_finish(&s->db, &given_up) == 0)
		return finish_db(s, err);
	/* A big message may have taken longer to come than PostgreSQL waits
	 * for somebody to prove who he is. */
	if (is_db_there(s, begin_db(s, err)) == -1)
		return -1;
	return finish_db(s, err);
}

void
session_db_pause(struct session *s)
{
	if (s->db != NULL && store_is_open(s->db))
		session_db_rest(s);
}

void
session_db_rest(struct session *s)
{
	if (s->db != NULL && !session_keep(s))
		close_db(s);
}

static int
load_folders(struct session *s, struct err *err)
{
	if (store_folders_load(s->db, &s->fence.account_id, s->facts,
		&s->folders, &s->n_folders, err) == -1)
		return -1;
	return store_risks_load(s->db, &s->fence.account_id, s->facts,
	    &s->risks, &s->n_risks, err);
}

void
session_forget(struct session *s)
{
	arena_reset(s->facts);
	s->account = NULL;
	s->folders = NULL;
	s->risks = NULL;
	s->n_folders = s->n_risks = 0;
}

int
session_load(struct session *s, unsigned states, struct err *err)
{
	if (session_db(s, err) == -1)
		return -1;
	session_forget(s);
	if (store_account_load(s->db, &s->fence.account_id, s->facts,
		&s->account, err) == -1)
		return -1;
	if (!((1u << s->account->state) & states))
		return err_set(err, ERR_GONE, "account %s is %s",
		    s->account->email, account_state_name(s->account->state));
	if (!fence_is_of(&s->fence, s->account))
		return err_set(err, ERR_FENCED, "account %s has a new owner "
		    "(%s, epoch %lld; we are %s, epoch %lld)",
		    s->account->email, s->account->owner,
		    (long long)s->account->epoch, s->fence.owner,
		    (long long)s->fence.epoch);
	return load_folders(s, err);
}

/* The old folders stay in memory until the next session_load: others may
 * still point to them. */
int
session_reload(struct session *s, struct err *err)
{
	if (session_db(s, err) == -1)
		return -1;
	return load_folders(s, err);
}

/* They come in the order of their ids. */
struct folder *
session_folder(struct session *s, int64_t id)
{
	size_t from = 0, to = s->n_folders, at;

	while (from < to) {
		at = from + (to - from) / 2;
		if (s->folders[at].id < id)
			from = at + 1;
		else
			to = at;
	}
	return from < s->n_folders && s->folders[from].id == id ?
	    &s->folders[from] : NULL;
}

struct folder *
session_inbox(struct session *s)
{
	size_t i;

	for (i = 0; i < s->n_folders; i++)
		if (s->folders[i].role == ROLE_INBOX)
			return &s->folders[i];
	return NULL;
}

int
session_blobs(struct session *s, struct err *err)
{
	if (s->blobs != NULL)
		return 0;
	return blob_writer_new(&s->blobs, s->conf->blob_dir, err);
}

/* --- the mail server ----------------------------------------------------- */

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
	int rv = session_db(s, err) == -1 ? -1 : store_account_load(s->db,
	    &s->fence.account_id, s->pass, now_r, err);

	session_db_rest(s);
	return rv;
}

/* Others of the account may have been refused meanwhile.  Hundreds that begin
 * at once all had to wait: they are briefed again. */
static int
must_wait_now(struct session *s, struct err *err)
{
	struct msg_briefing b;
	struct account briefed = { 0 }, *now = &briefed;

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
	rv = session_db(s, err) == -1 ? -1 : store_account_try_login(s->db,
	    &s->fence, LOGIN_WINDOW_SECS, &is_ours, err);
	session_db_rest(s);
	if (rv == -1)
		return -1;
	s->is_announced = is_ours;
	if (is_ours)
		return 0;
	s->is_put_off = true;
	err_set(err, ERR_TEMPORARY, "refused before, and somebody else is "
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
	    store_account_logged_in(s->db, &s->fence, &err) == -1)
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
may_log_in(struct session *s, const char *host, uint16_t port,
    struct err *err)
{
	if (s->hooks->want(s->hooks->arg, RESOURCE_LOGIN, host, port,
		&s->login_permit, err) == -1)
		return -1;
	if ((clock_mono_msecs() - s->connect_mono_msecs <= IN_LINE_MSECS ||
		must_wait_now(s, err) == 0) && announce_login(s, err) == 0)
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
		p->rawlog_path = arena_printf(s->facts, "%s/%s-%ld.log",
		    s->conf->rawlog_dir,
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
open_in_turn(struct session *s, const struct imap_params *params,
    struct err *err)
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
unseal_secret(struct session *s, char *secret_r, size_t size,
    struct err *err)
{
	const struct account *a = s->account;
	const struct sealed sealed = { a->secret, a->secret_len };
	const struct seal_address address = {
		.service = "imap",
		.host = a->imap_host,
		.port = a->imap_port,
		.tls = tls_mode_name(a->imap_tls),
		.login = a->imap_login,
	};
	struct seal_bond bond;

	seal_bond_make(&bond, &s->fence.account_id, &address);
	return s->hooks->unseal(s->hooks->arg, &bond, &sealed, secret_r, size,
	    err);
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
	s->round_trips_before = 0;
	s->probed = SHOWS_NONE;
	s->has_probed_body = false;
	s->refused_probes = 0;
	imap_set_patience(s->imap, s->patience_msecs);
	return 0;
}

void
session_disconnect(struct session *s)
{
	struct imap_stats stats;

	if (s->imap == NULL)
		return;
	imap_stats(s->imap, &stats);
	s->totals.round_trips += stats.round_trips - s->round_trips_before;
	s->totals.is_slowed |= stats.is_slowed;
	imap_close(&s->imap);
	s->selected_id = 0;
	s->hooks->give_back(s->hooks->arg, s->account_permit);
}

bool
session_is_usable_after(const struct session *s, const struct err *err)
{
	if (s->imap == NULL)
		return false;
	return err->kind == ERR_SERVER || err->kind == ERR_PERMANENT ||
	    err->kind == ERR_STALE || err->kind == ERR_GONE;
}

/* --- the process around -------------------------------------------------- */

int
session_may_go_on(struct session *s, struct err *err)
{
	return s->hooks->may_go_on(s->hooks->arg, err);
}

void
session_activity(struct session *s, const char *fmt, ...)
{
	char text[sizeof(((struct msg_activity *)NULL)->text)];
	char clean[sizeof(text)];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	text_clean_line(clean, sizeof(clean), text, strlen(text));
	s->hooks->activity(s->hooks->arg, clean);
}

int
session_scan_refused(struct session *s, struct err *err)
{
	if (err->kind != ERR_SERVER)
		return -1;
	s->is_scan_refused = true;
	err->kind = ERR_STALE;
	return -1;
}

void
session_note(struct session *s, enum risk_step step, int64_t folder_id,
    uint32_t uid_from, uint32_t uid_to)
{
	s->note.account_id = s->fence.account_id;
	s->note.folder_id = folder_id;
	s->note.step = step;
	s->note.uid_from = uid_from;
	s->note.uid_to = uid_to;
	s->hooks->note(s->hooks->arg, &s->note);
}
