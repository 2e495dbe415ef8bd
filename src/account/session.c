/*
 * session.c - the connections and facts of one account's work.
 *
 * Runs in: whoever syncs.  Blocks on PostgreSQL, the mail server and the
 * budgets.
 *
 * PostgreSQL is borrowed (db.c), the mail connection is held for the life of
 * the pass (login.c).
 */
#include "account/session.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/xmem.h"

#include <stdarg.h>

struct session *
session_new(const struct conf *conf, const struct account_hooks *hooks,
    const struct fence *fence)
{
	struct session *s = xcalloc(1, sizeof(*s));
	char id[UUID_TEXT_SIZE], name[STORE_NAME_SIZE];

	s->conf = conf;
	s->hooks = hooks;
	s->fence = *fence;
	s->facts = arena_new("account facts");
	s->pass = arena_new("pass");
	account_db_init(&s->db, conf, hooks,
	    store_session_name(name, &fence->account_id, fence->epoch));
	log_init(&s->log, LOG_SYNC, "account_id=%s",
	    uuid_format(&fence->account_id, id));
	return s;
}

void
session_free(struct session **s)
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

/* --- PostgreSQL ---------------------------------------------------------- */

bool
session_must_yield(const struct session *s)
{
	return s->hooks->must_yield != NULL &&
	       s->hooks->must_yield(s->hooks->arg);
}

int
session_db_start(struct session *s, struct err *err)
{
	return account_db_start(&s->db, err);
}

int
session_db(struct session *s, struct err *err)
{
	return account_db_open(&s->db, err);
}

void
session_db_pause(struct session *s)
{
	account_db_pause(&s->db);
}

void
session_db_rest(struct session *s)
{
	account_db_rest(&s->db);
}

static int
load_folders(struct session *s, struct err *err)
{
	if (store_folders_load(s->db.store, &s->fence.account_id, s->facts,
		&s->folders, &s->n_folders, err) == -1)
		return -1;
	return store_risks_load(s->db.store, &s->fence.account_id, s->facts,
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
	if (store_account_load(s->db.store, &s->fence.account_id, s->facts,
		&s->account, err) == -1)
		return -1;
	if (!((1u << s->account->state) & states))
		return err_set(err, ERR_GONE, "account %s is %s",
		    s->account->email, account_state_name(s->account->state));
	if (!fence_is_of(&s->fence, s->account))
		return err_set(err, ERR_FENCED,
		    "account %s has a new owner "
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
	return from < s->n_folders && s->folders[from].id == id
		   ? &s->folders[from]
		   : NULL;
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
