/*
 * briefing.c - the facts of a hot account, from the clerk's session.
 *
 * Runs in: the clerk, which writes a briefing, and hot children, which begin
 * with it.
 *
 * Most beginnings of a hot child find nothing new: after a restart, after a
 * promotion, after a connection that was cut.  A PostgreSQL session of its own
 * would then be most of what the beginning costs both hosts, and hundreds begin
 * at once when a worker dies.  So the clerk reads for it what fits into one
 * message: the account and INBOX.  Whatever is out of the ordinary (a step that
 * killed a child before, a parked folder, a name too long) is not in it: the
 * child reads for itself then.  That a briefing may be old is no harm: who owns
 * the account and where the cursor stands is checked with every write.
 */
#include "account/session.h"

#include <bsd/string.h>

static bool
fill_text(char *to, size_t size, const char *from)
{
	return strlcpy(to, from, size) < size;
}

static bool
fill_account(struct msg_briefing *b, const struct account *a)
{
	if (a->state != ACCOUNT_LIVE || a->secret_len > sizeof(b->secret))
		return false;
	b->user_id = a->user_id;
	b->tls = a->imap_tls;
	b->port = a->imap_port;
	b->auth_failures = a->auth_failures;
	b->epoch = a->epoch;
	b->next_try_secs = a->next_try_secs;
	b->secret_len = (uint32_t)a->secret_len;
	memcpy(b->secret, a->secret, a->secret_len);
	return fill_text(b->owner, sizeof(b->owner), a->owner) &&
	       fill_text(b->host, sizeof(b->host), a->imap_host) &&
	       fill_text(b->login, sizeof(b->login), a->imap_login) &&
	       fill_text(b->email, sizeof(b->email), a->email) &&
	       fill_text(b->last_error, sizeof(b->last_error), a->last_error);
}

static bool
fill_inbox(struct msg_briefing *b, const struct folder *f)
{
	if (!f->is_selectable || f->missing_since_secs != 0 ||
	    f->park_failures > 0 || f->doubt[0] != '\0')
		return false;
	b->inbox.id = f->id;
	b->inbox.generation = f->generation;
	b->inbox.stored = f->stored;
	b->inbox.explained = f->explained;
	b->inbox.last_poll_secs = f->last_poll_secs;
	b->inbox.no_condstore_until_secs = f->no_condstore_until_secs;
	b->inbox.no_uidnext_until_secs = f->no_uidnext_until_secs;
	b->inbox.verified_secs = f->verified_secs;
	b->inbox.uidvalidity = f->cursor.uidvalidity;
	b->inbox.uidnext = f->cursor.uidnext;
	b->inbox.highestmodseq = f->cursor.highestmodseq;
	b->inbox.backfill_below = f->cursor.backfill_below;
	b->inbox.messages = f->cursor.messages;
	b->inbox.flag_scan_uid = f->cursor.flag_scan_uid;
	b->inbox.is_remapping = f->is_remapping;
	b->inbox.delimiter = f->delimiter;
	return fill_text(b->inbox.path, sizeof(b->inbox.path), f->path) &&
	       fill_text(b->inbox.wire, sizeof(b->inbox.wire), f->wire) &&
	       fill_text(b->inbox.no_condstore, sizeof(b->inbox.no_condstore),
		   f->no_condstore);
}

int
account_brief(struct store *db, const struct uuid *account_id,
    struct arena *arena, struct msg_briefing *b, struct err *err)
{
	struct account *account;
	struct folder *inbox;
	struct risk *risks;
	size_t n_risks;

	memset(b, 0, sizeof(*b));
	b->account_id = *account_id;
	if (store_account_load(db, account_id, arena, &account, err) == -1 ||
	    store_inbox_load(db, account_id, arena, &inbox, err) == -1 ||
	    store_risks_load(db, account_id, arena, &risks, &n_risks, err) ==
		-1)
		return -1;
	b->is_whole = n_risks == 0 && inbox != NULL &&
		      fill_account(b, account) && fill_inbox(b, inbox);
	return 0;
}

/* --- in the hot child ------------------------------------------------------
 */

static void
take_account(struct session *s, const struct msg_briefing *b)
{
	struct account *a = ARENA_NEW(s->facts, struct account);
	uint8_t *secret = ARENA_ARRAY(s->facts, uint8_t, b->secret_len + 1);

	memcpy(secret, b->secret, b->secret_len);
	a->id = b->account_id;
	a->user_id = b->user_id;
	a->state = ACCOUNT_LIVE;
	a->email = arena_strdup(s->facts, b->email);
	a->imap_host = arena_strdup(s->facts, b->host);
	a->imap_login = arena_strdup(s->facts, b->login);
	a->imap_port = b->port;
	a->imap_tls = b->tls;
	a->secret = secret;
	a->secret_len = b->secret_len;
	a->epoch = b->epoch;
	a->next_try_secs = b->next_try_secs;
	a->auth_failures = b->auth_failures;
	a->last_error = arena_strdup(s->facts, b->last_error);
	a->owner = arena_strdup(s->facts, b->owner);
	a->name = a->state_reason = a->smtp_host = a->smtp_login = a->auth = "";
	s->account = a;
}

static void
take_inbox(struct session *s, const struct msg_briefing *b)
{
	struct folder *f = ARENA_NEW(s->facts, struct folder);

	f->id = b->inbox.id;
	f->role = ROLE_INBOX;
	f->is_selectable = true;
	f->path = arena_strdup(s->facts, b->inbox.path);
	f->wire = arena_strdup(s->facts, b->inbox.wire);
	f->delimiter = b->inbox.delimiter;
	f->cursor.uidvalidity = b->inbox.uidvalidity;
	f->cursor.uidnext = b->inbox.uidnext;
	f->cursor.highestmodseq = b->inbox.highestmodseq;
	f->cursor.backfill_below = b->inbox.backfill_below;
	f->cursor.messages = b->inbox.messages;
	f->cursor.flag_scan_uid = b->inbox.flag_scan_uid;
	f->is_remapping = b->inbox.is_remapping;
	f->park_reason = f->doubt = f->object_id = "";
	f->no_condstore = arena_strdup(s->facts, b->inbox.no_condstore);
	f->last_poll_secs = b->inbox.last_poll_secs;
	f->no_condstore_until_secs = b->inbox.no_condstore_until_secs;
	f->no_uidnext_until_secs = b->inbox.no_uidnext_until_secs;
	f->verified_secs = b->inbox.verified_secs;
	f->generation = b->inbox.generation;
	f->stored = b->inbox.stored;
	f->explained = b->inbox.explained;
	s->folders = f;
	s->n_folders = 1;
}

bool
session_is_briefed(struct session *s, struct msg_briefing *b)
{
	return s->hooks->brief != NULL &&
	       s->hooks->brief(s->hooks->arg, b) == 0 && b->is_whole &&
	       b->epoch == s->fence.epoch &&
	       strcmp(b->owner, s->fence.owner) == 0;
}

int
session_load_inbox(struct session *s, struct err *err)
{
	struct msg_briefing b;

	if (!session_is_briefed(s, &b))
		return session_load(s, 1u << ACCOUNT_LIVE, err);
	session_forget(s);
	take_account(s, &b);
	take_inbox(s, &b);
	return 0;
}
