/*
 * backfill.c - the older messages of a folder, newest first.
 *
 * Runs in: whoever syncs.  Blocks.
 *
 * Windows of sequence numbers from the top down, so that gaps between UIDs
 * cost nothing and memory is bounded; the cursor's backfill_below falls with
 * each window, in the transaction of its last rows.  A window that was begun
 * and not finished is seen again, as the first of the next run, and what is
 * stored of it is not fetched again.
 *
 * A folder whose UIDs have become void is the same work: its messages are
 * recognised window by window and only the strangers downloaded.
 */
#include "sync/backfill.h"

#include "base/clock.h"
#include "sync/compare.h"
#include "sync/events.h"
#include "sync/ingest.h"
#include "sync/windows.h"

#define WINDOW 1000
#define WINDOW_FULL 20000 /* more is not held */
#define RECOGNISE_FROM 50 /* new messages that are worth a look first */

#define ITEMS (ITEM_FLAGS | ITEM_SIZE)
#define ITEMS_RECOGNISE (ITEMS | ITEM_DATE | ITEM_MESSAGE_ID)

struct scan {
	struct session *s;
	struct findings f;
	uint32_t from, below; /* UIDs; below 0: no limit */
	bool is_overfull;
};

static int
backfill_on_place(void *arg, const struct place *p)
{
	struct scan *scan = arg;

	if (p->uid < scan->from || (scan->below != 0 && p->uid >= scan->below))
		return 0;
	if (scan->f.n_fresh >= WINDOW_FULL)
		scan->is_overfull = true;
	else
		findings_add_fresh(scan->s, &scan->f, p);
	return 0;
}

/* Takes out what is stored already, and what is recognised. */
static int
leave_strangers(struct session *s, struct folder *folder, struct findings *f,
    bool recognise, struct err *err)
{
	struct commit_result result;
	uint32_t *uids = ARENA_ARRAY(s->pass, uint32_t, f->n_fresh + 1);
	bool *known = ARENA_ARRAY(s->pass, bool, f->n_fresh + 1);
	size_t i, n = 0;

	if (f->n_fresh == 0)
		return 0;
	for (i = 0; i < f->n_fresh; i++)
		uids[i] = f->fresh[i].uid;
	if (session_db(s, err) == -1 ||
	    store_known_uids(
		s->db.store, folder->id, uids, f->n_fresh, known, err) == -1)
		return -1;
	for (i = 0; i < f->n_fresh; i++)
		if (!known[i])
			f->fresh[n++] = f->fresh[i];
	f->n_fresh = n;
	if (!recognise || n == 0)
		return 0;
	memset(known, 0, n * sizeof(*known));
	if (store_recognise(s->db.store, &s->fence, folder, f->fresh, n, known,
		s->pass, &result, err) == -1)
		return -1;
	events_commit(s, folder->id, &result);
	for (i = n = 0; i < f->n_fresh; i++)
		if (!known[i])
			f->fresh[n++] = f->fresh[i];
	f->n_fresh = n;
	return 0;
}

/* Are there messages without a place that these could be? */
static int
has_homeless(struct session *s, const struct folder *folder, bool *yes_r,
    struct err *err)
{
	*yes_r = folder->is_remapping;
	if (*yes_r)
		return 0;
	return session_db(s, err) == -1 ? -1
					: store_has_unplaced(s->db.store,
					      &s->fence.account_id, yes_r, err);
}

/* --- windows ------------------------------------------------------------- */

struct backfill {
	struct session *s;
	struct folder *folder;
	struct ingest *in;
	struct backfill_budget *budget;
	bool recognise;
	bool is_first; /* window of this run: part of it may be stored */
	uint32_t below; /* UIDs from here up are done */
	uint32_t hi;	/* sequence number of the newest that is not */
	uint32_t width; /* of the window; more where nothing is shown */
};

/* A refused sequence number is one that was expunged meanwhile. */
static int
scan_seq(struct session *s, uint32_t from, uint32_t to, unsigned items,
    imap_on_place on, void *arg, struct err *err)
{
	session_note(s, RISK_FOLDER, s->selected_id, 0, 0);
	if (imap_scan_seq(s->imap, from, to, items, on, arg, err) == 0) {
		session_note(s, RISK_NONE, 0, 0, 0);
		s->sync->is_scan_refused = false;
		return 0;
	}
	return sync_scan_refused(s, err);
}

static int
on_uid(void *arg, const struct place *p)
{
	*(uint32_t *)arg = p->uid;
	return 0;
}

/* How many messages have a UID under `below`: a search by halves. */
static int
find_start(struct backfill *b, uint32_t exists, struct err *err)
{
	uint32_t lo = 0, hi = exists, mid, uid;

	if (b->below >= b->folder->cursor.uidnext) {
		b->hi = exists;
		return 0;
	}
	while (lo < hi) {
		mid = lo + (hi - lo + 1) / 2;
		uid = 0;
		if (scan_seq(b->s, mid, mid, ITEM_FLAGS, on_uid, &uid,
			err) == -1)
			return -1;
		if (uid != 0 && uid < b->below)
			lo = mid;
		else
			hi = mid - 1;
	}
	b->hi = lo;
	return 0;
}

static int
scan_window(struct backfill *b, uint32_t lo, struct scan *scan,
    struct err *err)
{
	scan->s = b->s;
	scan->from = 1;
	/* What is shown is there, also above a UIDNEXT told too low. */
	scan->below = b->below < b->folder->cursor.uidnext ? b->below : 0;
	if (scan_seq(b->s, lo, b->hi, b->recognise ? ITEMS_RECOGNISE : ITEMS,
		backfill_on_place, scan, err) == -1)
		return -1;
	findings_sort(&scan->f);
	return 0;
}

static uint32_t
next_width(const struct backfill *b, size_t n_shown)
{
	if (n_shown > 0)
		return WINDOW;
	return b->width < UINT32_MAX / 2 ? b->width * 2 : UINT32_MAX;
}

/* Where the cursor is when the window is stored; `newest` is of its messages,
 * 0 for none. */
static struct cursor
window_target(const struct backfill *b, uint32_t newest)
{
	struct cursor target = b->folder->cursor;

	target.backfill_below = b->below;
	if (newest >= target.uidnext)
		target.uidnext = newest < UINT32_MAX ? newest + 1 : newest;
	return target;
}

static int
do_window(struct backfill *b, struct err *err)
{
	uint32_t lo = b->hi > b->width ? b->hi - b->width + 1 : 1, newest = 0;
	struct scan scan = { .f = { 0 } };
	struct cursor target;
	size_t n_shown;

	if (b->hi > 0 && scan_window(b, lo, &scan, err) == -1)
		return -1;
	if (scan.is_overfull && b->width > WINDOW) {
		b->width /= 2;
		return 0;
	}
	n_shown = scan.f.n_fresh;
	if (n_shown > 0) {
		b->below = scan.f.fresh[0].uid;
		newest = scan.f.fresh[n_shown - 1].uid;
	}
	if (lo == 1 || b->hi == 0)
		b->below = 1;
	/* Otherwise nothing stops the commits of the last window. */
	if ((b->is_first || b->recognise) &&
	    (ingest_wait(b->in, err) == -1 || leave_strangers(b->s, b->folder,
		&scan.f, b->recognise, err) == -1))
		return -1;
	b->is_first = false;
	b->s->sync->progress.done += (int64_t)(n_shown - scan.f.n_fresh);
	target = window_target(b, newest);
	if (ingest_messages(b->in, scan.f.fresh, scan.f.n_fresh, NULL,
		&target, err) == -1)
		return -1;
	b->budget->messages -= (int64_t)scan.f.n_fresh;
	b->width = next_width(b, n_shown);
	b->hi = lo - 1;
	return 0;
}

static bool
is_within_budget(const struct backfill *b)
{
	return b->budget->messages > 0 &&
	    clock_mono_msecs() < b->budget->deadline_mono_msecs &&
	    !session_must_yield(b->s);
}

static int
do_windows(struct backfill *b, uint32_t exists, struct err *err)
{
	uint32_t below = b->folder->cursor.backfill_below;
	struct arena *outer = b->s->pass;
	int rv = 0;

	b->below = below == 0 ? b->folder->cursor.uidnext : below;
	if (b->below > 1 && (has_homeless(b->s, b->folder, &b->recognise,
		err) == -1 || find_start(b, exists, err) == -1))
		return -1;
	/* What a window needs dies with it, however many there are. */
	b->s->pass = arena_new("backfill window");
	while (rv == 0 && b->below > 1 && is_within_budget(b)) {
		session_activity(b->s, "%s: %u to go", b->folder->path,
		    b->hi);
		rv = do_window(b, err);
		arena_reset(b->s->pass);
	}
	arena_free(&b->s->pass);
	b->s->pass = outer;
	return rv;
}

static int
backfill_settle(struct session *s, struct folder *folder, struct err *err)
{
	struct commit_result result;
	bool has_more = folder->is_remapping;

	while (has_more) {
		if (session_may_go_on(s, err) == -1 ||
		    session_db(s, err) == -1 ||
		    store_folder_settle(s->db.store, &s->fence, folder, s->pass,
			&result, &has_more, err) == -1)
			return -1;
		events_commit(s, folder->id, &result);
	}
	return 0;
}

int
backfill_folder(struct session *s, struct folder *folder, uint32_t exists,
    struct backfill_budget *budget, bool *is_complete_r, struct err *err)
{
	struct backfill b = {
		.s = s,
		.folder = folder,
		.budget = budget,
		.is_first = true,
		.width = WINDOW,
	};
	int rv;

	*is_complete_r = false;
	if (folder->cursor.backfill_below != 1) {
		if (ingest_start(&b.in, s, folder, err) == -1)
			return -1;
		rv = do_windows(&b, exists, err);
		if (ingest_finish(&b.in, rv == 0 ? err : NULL) == -1)
			rv = -1;
		if (rv == -1)
			return -1;
	}
	if (folder->cursor.backfill_below != 1)
		return 0;
	*is_complete_r = true;
	return backfill_settle(s, folder, err);
}

/* --- new messages -------------------------------------------------------- */

/* Many at once may be old acquaintances: ask for what tells them. */
static int
meet_fresh(struct session *s, struct look *look, struct findings *f,
    struct err *err)
{
	struct scan scan = { .s = s };
	size_t i, n = 0;

	if (look->n_fresh == 0)
		return 0;
	scan.from = look->fresh[0].uid;
	session_note(s, RISK_FOLDER, look->folder->id, 0, 0);
	if (imap_scan_uids(s->imap, scan.from,
		look->fresh[look->n_fresh - 1].uid, ITEMS_RECOGNISE,
		backfill_on_place, &scan, err) == -1)
		return -1;
	findings_sort(&scan.f);
	for (i = 0; i < scan.f.n_fresh; i++) {
		while (n < look->n_fresh &&
		    look->fresh[n].uid < scan.f.fresh[i].uid)
			n++;
		if (n < look->n_fresh &&
		    look->fresh[n].uid == scan.f.fresh[i].uid)
			findings_add_fresh(s, f, &scan.f.fresh[i]);
	}
	return leave_strangers(s, look->folder, f, true, err);
}

int
backfill_fresh(struct session *s, struct look *look, struct err *err)
{
	struct findings strangers = { 0 };
	const struct place *wanted = look->fresh;
	size_t n = look->n_fresh;
	struct ingest *in;
	bool recognise = false;
	int rv;

	session_activity(s, "%s: fetching %zu", look->folder->path, n);
	if (n > RECOGNISE_FROM &&
	    has_homeless(s, look->folder, &recognise, err) == -1)
		return -1;
	if (recognise) {
		if (meet_fresh(s, look, &strangers, err) == -1)
			return -1;
		wanted = strangers.fresh;
		n = strangers.n_fresh;
	}
	if (ingest_start(&in, s, look->folder, err) == -1)
		return -1;
	/* Recognised ones lie between the others: no low-water mark then. */
	rv = ingest_messages(in, wanted, n, recognise ? NULL : &look->base,
	    &look->target, err);
	if (ingest_finish(&in, rv == 0 ? err : NULL) == -1)
		rv = -1;
	return rv;
}
