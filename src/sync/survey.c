/*
 * survey.c - which folders of an account need work, and the three phases.
 *
 * Runs in: pool and job children.  Blocks.
 *
 * Flags and vanished messages of every folder come first, new messages after:
 * a message moved between folders is so seen to go before it is seen to come,
 * and keeps its identity (R-SYNC-5).  One folder's trouble is that folder's
 * alone; only when the server refuses all of them has the pass failed.
 */
#include "sync/pass.h"

#include "base/clock.h"
#include "sync/refusals.h"
#include "sync/risks.h"

#define STATUS_FLIGHT 200 /* folders */

static bool
is_in_scope(const struct folder *f, unsigned scope)
{
	switch (f->role) {
	case ROLE_INBOX:
		return scope & SCOPE_INBOX;
	case ROLE_NONE:
	case ROLE_ALL:
		return scope & SCOPE_OTHER;
	default:
		return scope & SCOPE_SPECIAL;
	}
}

/* INBOX first, then folders with a role, then the others. */
static int
by_importance(const void *a, const void *b)
{
	const struct folder *x = *(struct folder *const *)a;
	const struct folder *y = *(struct folder *const *)b;
	int rx = x->role == ROLE_NONE ? FOLDER_ROLE_COUNT : (int)x->role;
	int ry = y->role == ROLE_NONE ? FOLDER_ROLE_COUNT : (int)y->role;

	if (rx != ry)
		return rx - ry;
	return strcmp(x->path, y->path);
}

struct work {
	struct folder **folders; /* to be looked at */
	size_t n, cap;
	struct look *looks;
	struct err *failures; /* of each; ERR_NONE: none */
	struct refusals refusals;
};

static void
work_init(struct session *s, struct work *w)
{
	memset(w, 0, sizeof(*w));
	w->cap = s->n_folders;
	w->folders = ARENA_ARRAY(s->pass, struct folder *, s->n_folders + 1);
	w->looks = ARENA_ARRAY(s->pass, struct look, s->n_folders + 1);
	w->failures = ARENA_ARRAY(s->pass, struct err, s->n_folders + 1);
	refusals_init(s, &w->refusals, s->n_folders);
}

size_t
pass_choose(struct session *s, unsigned scope, struct folder **chosen)
{
	int64_t now = clock_wall_secs();
	size_t i, n = 0;

	for (i = 0; i < s->n_folders; i++) {
		struct folder *f = &s->folders[i];

		if (is_in_scope(f, scope) && f->is_selectable &&
		    f->missing_since_secs == 0 &&
		    f->parked_until_secs <= now &&
		    !risks_has_folder(s, f->id))
			chosen[n++] = f;
	}
	qsort(chosen, n, sizeof(*chosen), by_importance);
	return n;
}

/* What a STATUS has to say to make a folder wanted. */
typedef bool (*is_wanted)(struct session *s, const struct folder *f,
    const struct view *view);

struct sieve {
	struct session *s;
	is_wanted wanted;
	struct folder **kept;
	size_t *n_kept;
	struct folder **renamed; /* their ids are news */
	size_t n_renamed;
};

/*
 * What has the name of a folder may be another one, with the same UIDVALIDITY
 * and the same numbers: two that swapped their names.  Its UIDs are void then,
 * as mailbox_objects() has it in its row.
 */
static void
survey_note_object(struct sieve *sieve, struct folder *f, const char *id)
{
	if (id[0] == '\0' || strcmp(f->object_id, id) == 0)
		return;
	if (f->object_id[0] != '\0') {
		log_info(&sieve->s->log, "folder_id=%lld: another folder has "
		    "its name", (long long)f->id);
		memset(&f->cursor, 0, sizeof(f->cursor));
		f->is_remapping = true;
		f->generation++;
	}
	f->object_id = arena_strdup(sieve->s->facts, id);
	sieve->renamed[sieve->n_renamed++] = f;
}

static int
survey_write_objects(struct sieve *sieve, struct err *err)
{
	struct session *s = sieve->s;

	if (sieve->n_renamed == 0)
		return 0;
	if (session_db(s, err) == -1 || store_folder_objects(s->db.store,
		&s->fence, sieve->renamed, sieve->n_renamed, err) == -1)
		return -1;
	session_db_rest(s);
	return 0;
}

static void
take_status(struct sieve *sieve, struct folder *f,
    const struct imap_status *status)
{
	struct view view = view_of_status(status);

	survey_note_object(sieve, f, status->object_id);
	if (sieve->wanted(sieve->s, f, &view))
		sieve->kept[(*sieve->n_kept)++] = f;
}

/* It came with the LIST, and the folder has not been renamed since. */
static bool
was_told_ahead(struct session *s, const struct folder *f,
    struct imap_status *status_r)
{
	bool is_same;
	size_t i;

	for (i = 0; i < s->sync->n_ahead; i++) {
		struct ahead *a = &s->sync->ahead[i];

		if (a->folder_id != f->id || a->wire == NULL)
			continue;
		*status_r = a->status;
		is_same = strcmp(a->wire, f->wire) == 0;
		a->wire = NULL;
		return is_same;
	}
	return false;
}

/* Keeps the folders that the STATUS makes wanted; `chosen` is used up. */
static int
survey_sift(struct session *s, struct folder **chosen, size_t n,
    is_wanted wanted, struct folder **kept, size_t *n_kept, struct err *err)
{
	struct sieve sieve = { s, wanted, kept, n_kept,
		ARENA_ARRAY(s->pass, struct folder *, n + 1), 0 };
	const char *wires[STATUS_FLIGHT];
	struct imap_status status[STATUS_FLIGHT];
	size_t from, flight, i, left = 0;

	for (i = 0; i < n; i++)
		if (was_told_ahead(s, chosen[i], &status[0]))
			take_status(&sieve, chosen[i], &status[0]);
		else
			chosen[left++] = chosen[i];
	for (from = 0; from < left; from += flight) {
		flight = left - from < STATUS_FLIGHT ? left - from :
						       STATUS_FLIGHT;
		memset(status, 0, sizeof(status));
		for (i = 0; i < flight; i++)
			wires[i] = chosen[from + i]->wire;
		if (imap_status(s->imap, wires, flight, status,
			err) == -1) {
			pass_note_unanswered(s, chosen + from, status,
			    flight);
			return -1;
		}
		for (i = 0; i < flight; i++)
			take_status(&sieve, chosen[from + i], &status[i]);
	}
	return survey_write_objects(&sieve, err);
}

/* May anything be new in it? */
static bool
survey_is_news(
    struct session *s, const struct folder *f, const struct view *view)
{
	struct plan plan = plan_folder(f, view, imap_caps(s->imap),
	    clock_wall_secs());

	if (plan.action != PLAN_NOTHING)
		return true;
	s->sync->totals.folders_polled++;
	return false;
}

/* May a message have left it?  Flags do not matter now. */
static bool
has_lost(struct session *s, const struct folder *f, const struct view *view)
{
	(void)s;
	return view->is_known && (view->messages != f->cursor.messages ||
	    view->uidnext != f->cursor.uidnext);
}

/* FNV-1a: tells one answer of the server from another. */
static uint64_t
mark_of(const struct view *view)
{
	const uint64_t said[] = { view->uidvalidity, view->uidnext,
		view->messages, view->highestmodseq };
	uint64_t mark = 14695981039346656037u;
	size_t i;

	for (i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		mark = (mark ^ said[i]) * 1099511628211u;
	return mark;
}

/* Has INBOX moved on from the copy?  What is not told says nothing. */
static void
survey_peek(
    struct session *s, const struct folder *inbox, const struct view *view)
{
	const struct cursor *c = &inbox->cursor;
	bool differs = view->messages != c->messages ||
	    (view->uidnext != 0 && view->uidnext != c->uidnext &&
		plan_has_uidnext(inbox, clock_wall_secs())) ||
	    (view->uidvalidity != 0 && view->uidvalidity != c->uidvalidity) ||
	    (view->highestmodseq != 0 && c->highestmodseq != 0 &&
		plan_has_condstore(inbox, imap_caps(s->imap),
		clock_wall_secs()) &&
		view->highestmodseq != c->highestmodseq);

	if (!view->is_known || c->uidvalidity == 0)
		return;
	s->sync->totals.peek = differs ? PEEK_DIFFERS : PEEK_SAME;
	s->sync->totals.inbox_generation = inbox->generation;
	s->sync->totals.inbox_mark = mark_of(view);
}

/* In a pass that leaves INBOX to the hot child, this is the only look at it. */
static bool
is_news_or_peek(struct session *s, const struct folder *f,
    const struct view *view)
{
	struct plan plan = plan_folder(f, view, imap_caps(s->imap),
	    clock_wall_secs());

	if (f->role != ROLE_INBOX || plan.is_short || plan.doubt != NULL)
		return survey_is_news(s, f, view);
	survey_peek(s, f, view);
	return false;
}

static int
find_work(struct session *s, unsigned scope, struct work *w, struct err *err)
{
	bool is_peek = (scope & SCOPE_PEEK) && !(scope & SCOPE_INBOX);
	struct folder **chosen = ARENA_ARRAY(s->pass, struct folder *,
	    s->n_folders + 1);
	size_t n = pass_choose(s, is_peek ? scope | SCOPE_INBOX : scope,
	    chosen);

	return survey_sift(s, chosen, n,
	    is_peek ? is_news_or_peek : survey_is_news, w->folders, &w->n, err);
}

/* 0: that folder's trouble, noted; -1: the pass's. */
static int
survey_note_failure(struct session *s, struct work *w, size_t i,
    const struct err *failure, struct err *err)
{
	if (!session_is_usable_after(s, failure)) {
		*err = *failure;
		return -1;
	}
	session_note(s, RISK_NONE, 0, 0, 0);
	w->failures[i] = *failure;
	return refusals_add(s, &w->refusals, w->folders[i]->id, failure, err);
}

static int
look_at_one(struct session *s, struct work *w, size_t i, struct err *err)
{
	struct err failure = ERR_INIT;

	if (pass_look(s, w->folders[i]->id, &w->looks[i], &failure) == -1)
		return survey_note_failure(s, w, i, &failure, err);
	return refusals_went_well(s, &w->refusals, err);
}

static int
look_at_all(struct session *s, struct work *w, struct err *err)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (look_at_one(s, w, i, err) == -1)
			return -1;
	return 0;
}

static size_t
find_in_work(const struct work *w, int64_t folder_id)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (w->folders[i]->id == folder_id)
			return i;
	return w->n;
}

static bool
has_fresh(const struct work *w, size_t i)
{
	return w->failures[i].kind == ERR_NONE && w->looks[i].n_fresh > 0;
}

/* New mail comes to INBOX; what comes elsewhere was moved there, as a rule. */
static bool
has_arrivals(const struct work *w)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (has_fresh(w, i) && w->folders[i]->role != ROLE_INBOX)
			return true;
	return false;
}

/*
 * Where do they come from?  Folders that are not in scope (INBOX, when a hot
 * child has it), or that were looked at before the move, are looked at now, so
 * that the messages are known to have gone before they are seen to come.
 */
static int
look_for_sources(struct session *s, struct work *w, struct err *err)
{
	struct folder **chosen = ARENA_ARRAY(s->pass, struct folder *,
	    s->n_folders + 1);
	struct folder **lost = ARENA_ARRAY(s->pass, struct folder *,
	    s->n_folders + 1);
	unsigned scope = SCOPE_INBOX | SCOPE_SPECIAL;
	size_t i, at, n, n_lost = 0;

	if (!has_arrivals(w))
		return 0;
	if (s->n_folders <= STATUS_FLIGHT)
		scope |= SCOPE_OTHER;
	n = pass_choose(s, scope, chosen);
	if (survey_sift(s, chosen, n, has_lost, lost, &n_lost, err) == -1)
		return -1;
	for (i = 0; i < n_lost; i++) {
		at = find_in_work(w, lost[i]->id);
		if (at < w->n && (has_fresh(w, at) ||
			w->failures[at].kind != ERR_NONE))
			continue;
		if (at == w->cap)
			break; /* a sibling added folders: next pass */
		if (at == w->n)
			w->folders[w->n++] = lost[i];
		if (look_at_one(s, w, at, err) == -1)
			return -1;
	}
	return 0;
}

static int
survey_fetch_all(struct session *s, struct work *w, struct err *err)
{
	struct err failure = ERR_INIT;
	size_t i;

	for (i = 0; i < w->n; i++)
		if (w->failures[i].kind == ERR_NONE &&
		    pass_fetch(s, &w->looks[i], &failure) == -1 &&
		    survey_note_failure(s, w, i, &failure, err) == -1)
			return -1;
	return 0;
}

static int
backfill_all(struct session *s, struct work *w,
    struct backfill_budget *budget, struct err *err)
{
	struct err failure = ERR_INIT;
	bool is_complete;
	size_t i;

	for (i = 0; i < w->n; i++) {
		if (w->failures[i].kind != ERR_NONE)
			continue;
		if (pass_backfill(s, &w->looks[i], budget, &is_complete,
			&failure) == -1) {
			if (survey_note_failure(s, w, i, &failure, err) == -1)
				return -1;
		} else if (!is_complete)
			s->sync->totals.has_more = true;
	}
	return 0;
}

int
pass_folders(struct session *s, unsigned scope,
    struct backfill_budget *budget, struct err *err)
{
	struct work w;

	work_init(s, &w);
	if (find_work(s, scope, &w, err) == -1 ||
	    look_at_all(s, &w, err) == -1)
		return -1;
	if (w.refusals.n_well == 0)
		return refusals_end(s, &w.refusals, err);
	if (look_for_sources(s, &w, err) == -1 ||
	    survey_fetch_all(s, &w, err) == -1 ||
	    backfill_all(s, &w, budget, err) == -1)
		return -1;
	return refusals_end(s, &w.refusals, err);
}
