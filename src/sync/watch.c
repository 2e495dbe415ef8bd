/*
 * watch.c - INBOX of a hot account, followed on one connection.
 *
 * Runs in: hot children.  Blocks.
 *
 * After a wake INBOX is selected again on the same connection: with QRESYNC
 * that is one round trip that tells all, and without it the only thing that
 * every server answers honestly (some tell nothing new to NOOP).  PostgreSQL
 * is opened when there is something to write and closed after; what a beginning
 * must know the clerk reads (briefing.c).
 */
#include "sync/pass.h"

#include "base/clock.h"
#include "base/heap.h"
#include "sync/quarantine.h"
#include "sync/risks.h"

#include <poll.h>

/* Looks this often where the server has no IDLE. */
#define NO_IDLE_MSECS 30000

/* Rounds in a row; a folder that never rests is left to its next wake. */
#define CATCH_UPS 5

/* A hot child lives for weeks. */
#define FACTS_MAX ((size_t)1 << 20)

/*
 * A body that does not come holds up those behind it.  So it is soon left to
 * the polls, which have the time; a server that is as slow with all of them is
 * given twice as much the next time.
 */
#define PATIENCE_MSECS 2000

#define BACKFILL_MESSAGES 2000
#define BACKFILL_MSECS 20000

static bool
has_written(const struct session *s)
{
	return s->sync->totals.created + s->sync->totals.updated +
		   s->sync->totals.deleted >
	       0;
}

/*
 * News may have come with the answer to a command after SELECT, where nobody
 * looked for it, and IDLE would not tell again.  One more SELECT says; without
 * mod-sequences it says nothing of flags, and only a look that finds nothing
 * new and is not disturbed may be followed by IDLE.
 */
static int
has_missed_news(struct session *s, const struct folder *inbox, bool *yes_r,
    struct err *err)
{
	const struct cursor *c = &inbox->cursor;
	struct imap_selected now;

	*yes_r = true;
	if (c->highestmodseq == 0)
		return 0;
	session_db_rest(s);
	s->selected_id = 0;
	if (imap_select(s->imap, inbox->wire, NULL, &now, NULL,
		err) == -1)
		return -1;
	s->selected_id = inbox->id;
	*yes_r = now.exists != c->messages ||
	    (now.uidnext != 0 && now.uidnext != c->uidnext &&
		plan_has_uidnext(inbox, clock_wall_secs())) ||
	    now.highestmodseq != c->highestmodseq;
	return 0;
}

static int
catch_up_once(struct session *s, bool *is_done_r, struct err *err)
{
	struct backfill_budget budget = {
		.messages = BACKFILL_MESSAGES,
		.deadline_mono_msecs = clock_mono_msecs() + BACKFILL_MSECS,
	};
	struct folder *inbox;
	struct look look;
	bool is_complete, is_quiet, has_missed;

	/* Each ERR_STALE left a set of folders behind: begin anew. */
	if (arena_used(s->facts) > FACTS_MAX &&
	    session_load(s, 1u << ACCOUNT_LIVE, err) == -1)
		return -1;
	inbox = session_inbox(s);
	if (inbox == NULL)
		return err_set(err, ERR_SERVER, "the server has no INBOX");
	/* Polls try it when its time has come. */
	if (risks_has_folder(s, inbox->id) ||
	    inbox->parked_until_secs > clock_wall_secs())
		return err_set(err, ERR_SERVER, "INBOX is in quarantine: %s",
		    inbox->park_reason);
	if (pass_look(s, inbox->id, &look, err) == -1)
		return -1;
	is_quiet = look.is_quiet && look.n_fresh == 0 && !look.needs_backfill;
	if (pass_fetch(s, &look, err) == -1 ||
	    pass_backfill(s, &look, &budget, &is_complete, err) == -1)
		return -1;
	s->sync->totals.has_more = !is_complete;
	if (has_written(s) &&
	    (session_db(s, err) == -1 ||
		store_account_synced(s->db.store, &s->fence,
		    s->sync->totals.last_mail_secs, err) == -1))
		return -1;
	*is_done_r = true;
	if (is_quiet || !is_complete)
		return 0;
	if (has_missed_news(s, look.folder, &has_missed, err) == -1)
		return -1;
	*is_done_r = !has_missed;
	return 0;
}

static int
watch_catch_up(struct session *s, struct err *err)
{
	bool is_done = false;
	int i;

	for (i = 0; i < CATCH_UPS && !is_done; i++)
		if (catch_up_once(s, &is_done, err) == -1)
			return -1;
	return 0;
}

static int
watch_finish(struct session *s, int rv)
{
	session_note(s, RISK_NONE, 0, 0, 0);
	session_db_rest(s);
	if (s->blobs != NULL)
		blob_rest(s->blobs);
	if (rv == -1)
		session_disconnect(s);
	arena_empty(s->pass); /* an idle child is to be small */
	return rv;
}

static int
sync_sync_watch(struct session *s, struct err *err)
{
	if (session_load_inbox(s, err) == -1)
		return -1;
	session_db_rest(s);
	if (sync_connect(s, err) == -1)
		return -1;
	if (session_inbox(s) == NULL && pass_list(s, 0, err) == -1)
		return -1;
	return watch_catch_up(s, err);
}

/*
 * A message that ends the connection is left to the polls, and the others are
 * followed on; that INBOX cannot be opened is theirs to find out, too.
 */
static int
watch_on(struct session *s, int (*step)(struct session *, struct err *),
    struct err *err)
{
	struct err failure = ERR_INIT;
	int rv;

	quarantine_begin(s);
	if (s->patience_msecs == 0)
		s->patience_msecs = PATIENCE_MSECS;
	while ((rv = step(s, &failure)) == -1) {
		if (failure.kind == ERR_DEADLINE)
			s->patience_msecs *= 2;
		if (s->note.step != RISK_FETCH ||
		    !quarantine_goes_on(s, &failure))
			break;
		failure.kind = ERR_NONE;
		step = sync_sync_watch;
	}
	if (rv == -1)
		*err = failure;
	return watch_finish(s, rv);
}

int
sync_watch_catch_up(struct session *s, struct err *err)
{
	return watch_on(
	    s, s->imap != NULL ? watch_catch_up : sync_sync_watch, err);
}

static int
watch_anew(struct session *s, struct err *err)
{
	if (session_load(s, 1u << ACCOUNT_LIVE, err) == -1)
		return -1;
	return watch_catch_up(s, err);
}

int
sync_watch_look_anew(struct session *s, struct err *err)
{
	return watch_on(s, s->imap != NULL ? watch_anew : sync_sync_watch, err);
}

int
sync_watch(struct session *s, struct err *err)
{
	return watch_on(s, sync_sync_watch, err);
}

/* Without IDLE: waits, then looks. */
static int
wait_blindly(int control_fd, int64_t msecs, enum imap_wake *wake_r)
{
	struct pollfd pfd = { .fd = control_fd, .events = POLLIN };

	if (msecs > NO_IDLE_MSECS)
		msecs = NO_IDLE_MSECS;
	heap_rest();
	*wake_r = poll(&pfd, 1, (int)msecs) > 0 ? WAKE_CONTROL : WAKE_CHANGED;
	return 0;
}

int
sync_watch_wait(struct session *s, int control_fd, int64_t msecs,
    bool *is_changed_r, struct err *err)
{
	int64_t limit = imap_idle_limit_msecs(s->imap);
	struct err not_yet = ERR_INIT;
	enum imap_wake wake;

	*is_changed_r = false;
	if (limit > 0 && limit < msecs)
		msecs = limit;
	session_activity(s, "idle");
	if (!(imap_caps(s->imap) & IMAP_IDLE)) {
		if (wait_blindly(control_fd, msecs, &wake) == -1)
			return -1;
	} else if (imap_idle(s->imap, control_fd, msecs, &wake,
		err) == -1) {
		session_disconnect(s);
		return -1;
	}
	*is_changed_r = wake == WAKE_CHANGED;
	/* There will be something to write. */
	if (*is_changed_r && (imap_caps(s->imap) & IMAP_IDLE) &&
	    session_db_start(s, &not_yet) == -1)
		log_debug(&s->log, "%s", not_yet.text);
	return 0;
}
