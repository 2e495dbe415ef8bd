/*
 * windows.c - a folder compared with its server in bounded memory.
 *
 * Runs in: whoever syncs.  Blocks.
 *
 * The idea: windows of sequence numbers from the top down.  Sequence numbers
 * bound a window whatever the gaps between UIDs; going down, an expunge by
 * someone else can make us see a message twice but never miss one (numbers
 * only fall).  A window must show as many messages as it spans, or nothing of
 * ours is taken for deleted: a server that hides messages for a moment would
 * empty the copy.  Where nothing at all is shown the next window is wider, so
 * that a server that says to have billions of messages costs some questions.
 */
#include "sync/windows.h"

#include "conf/quirks.h"
#include "sync/compare.h"
#include "sync/identity.h"

#define WINDOW_ALL 20000
#define WINDOW_SLICE 500
#define ATTEMPTS 3

/* --- findings ------------------------------------------------------------ */

/* Grows an array in the pass's arena: the old half is lost until its end. */
static void *
windows_grow(
    struct arena *arena, void *items, size_t n, size_t *cap, size_t size)
{
	void *bigger;

	if (n < *cap)
		return items;
	*cap = *cap ? *cap * 2 : 16;
	bigger = arena_alloc(arena, *cap * size);
	if (n > 0)
		memcpy(bigger, items, n * size);
	return bigger;
}

static void
keep_place(struct arena *arena, struct place *to, const struct place *p)
{
	*to = *p;
	if (!p->has_flags || p->flags.keywords == NULL ||
	    p->flags.keywords[0] == '\0')
		to->flags.keywords = "";
	else
		to->flags.keywords = arena_strdup(arena, p->flags.keywords);
	to->message_id = p->message_id == NULL ? NULL :
	    arena_strdup(arena, p->message_id);
}

void
findings_add_changed(struct session *s, struct findings *f,
    const struct place *p)
{
	f->changed = windows_grow(s->pass, f->changed, f->n_changed,
	    &f->cap_changed, sizeof(*f->changed));
	keep_place(s->pass, &f->changed[f->n_changed++], p);
}

void
findings_add_fresh(struct session *s, struct findings *f,
    const struct place *p)
{
	f->fresh = windows_grow(
	    s->pass, f->fresh, f->n_fresh, &f->cap_fresh, sizeof(*f->fresh));
	keep_place(s->pass, &f->fresh[f->n_fresh++], p);
}

void
findings_add_vanished(struct session *s, struct findings *f, uint32_t uid)
{
	f->vanished = windows_grow(s->pass, f->vanished, f->n_vanished,
	    &f->cap_vanished, sizeof(*f->vanished));
	f->vanished[f->n_vanished++] = uid;
}

void
findings_add_replaced(struct session *s, struct findings *f,
    const struct place *p)
{
	f->replaced = windows_grow(s->pass, f->replaced, f->n_replaced,
	    &f->cap_replaced, sizeof(*f->replaced));
	f->replaced[f->n_replaced++] = p->uid;
	findings_add_fresh(s, f, p);
}

void
findings_sort(struct findings *f)
{
	f->n_replaced = uids_sort(f->replaced, f->n_replaced);
	f->n_changed = places_sort(f->changed, f->n_changed);
	f->n_fresh = places_sort(f->fresh, f->n_fresh);
	f->n_vanished = uids_sort(f->vanished, f->n_vanished);
}

/* --- one window ---------------------------------------------------------- */

struct window {
	struct arena *arena;
	struct place *places;
	size_t n, cap;
	bool is_overfull; /* more than can be held: not all of them are here */
	bool tell_apart;
	bool has_ids; /* a slice: Message-IDs are asked for, too */
};

static void
window_reset(struct window *w)
{
	arena_reset(w->arena);
	w->places = NULL;
	w->n = w->cap = 0;
	w->is_overfull = false;
}

static unsigned
window_items(const struct window *w)
{
	return !w->tell_apart ? ITEM_FLAGS : w->has_ids ?
	    ITEMS_IDENTITY | ITEM_MESSAGE_ID : ITEMS_IDENTITY;
}

static int
windows_on_place(void *arg, const struct place *p)
{
	struct window *w = arg;

	if (w->n >= 2 * WINDOW_ALL) {
		w->is_overfull = true;
		return 0;
	}
	w->places = windows_grow(
	    w->arena, w->places, w->n, &w->cap, sizeof(*w->places));
	keep_place(w->arena, &w->places[w->n++], p);
	return 0;
}

/* Our rows of from <= uid <= to against the server's, in pages. */
static int
compare_range(struct session *s, struct folder *folder,
    const struct window *w, uint32_t from, uint32_t to, struct findings *f,
    struct err *err)
{
	struct place *local;
	struct comparison cmp;
	size_t n_local, i, first = 0, last;
	uint32_t end;

	if (session_db(s, err) == -1)
		return -1;
	do {
		if (store_places(s->db.store, folder->id, from, to, WINDOW_ALL,
			w->arena, &local, &n_local, err) == -1)
			return -1;
		end = n_local == WINDOW_ALL ? local[n_local - 1].uid : to;
		while (first < w->n && w->places[first].uid < from)
			first++;
		for (last = first; last < w->n && w->places[last].uid <= end;
		    last++)
			;
		compare_places(w->arena, local, n_local, w->places + first,
		    last - first, &cmp);
		for (i = 0; i < cmp.n_changed; i++)
			findings_add_changed(s, f, &cmp.changed[i]);
		for (i = 0; i < cmp.n_fresh; i++)
			findings_add_fresh(s, f, &cmp.fresh[i]);
		for (i = 0; i < cmp.n_vanished; i++)
			findings_add_vanished(s, f, cmp.vanished[i]);
		if (w->tell_apart && identity_check(s, folder,
			w->places + first, last - first, f, err) == -1)
			return -1;
		from = end + 1;
	} while (end < to);
	return 0;
}

/* --- all of it ----------------------------------------------------------- */

struct descent {
	struct window *w;
	bool is_strict;
	uint32_t hi;	/* the window's newest, a sequence number */
	uint32_t width; /* of the window */
	uint32_t above; /* UIDs from here up are done */
	uint32_t floor; /* UIDs below are not looked at */
};

/*
 * The window's messages.  -1 with ERR_STALE, when strict: fewer messages than
 * there should be; they may have gone while we counted, select again.
 */
static int
scan_down(struct session *s, struct descent *d, uint32_t lo, struct err *err)
{
	struct window *w = d->w;

	window_reset(w);
	session_db_rest(s);
	if (d->hi > 0 && imap_scan_seq(s->imap, lo, d->hi, window_items(w),
			     windows_on_place, w, err) == -1)
		return sync_scan_refused(s, err);
	s->sync->is_scan_refused = false;
	w->n = places_sort(w->places, w->n);
	if (w->is_overfull && d->width <= WINDOW_ALL)
		return err_set(err, ERR_SERVER, "more messages shown than "
		    "were asked for");
	if (d->is_strict && d->hi > 0 && w->n != (size_t)(d->hi - lo) + 1)
		return err_set(err, ERR_STALE, "%zu messages shown "
		    "where %u are said to be", w->n, d->hi - lo + 1);
	return 0;
}

/* One window; leaves `d` at the next. */
static int
compare_window(struct session *s, struct folder *folder, struct descent *d,
    struct findings *f, struct err *err)
{
	uint32_t lo = d->hi > d->width ? d->hi - d->width + 1 : 1, from;
	struct window *w = d->w;

	if (scan_down(s, d, lo, err) == -1)
		return -1;
	if (w->is_overfull) {
		d->width /= 2;
		return 0;
	}
	if (w->n > 0 && w->places[w->n - 1].uid > f->highest)
		f->highest = w->places[w->n - 1].uid;
	from = lo == 1 || d->hi == 0 ? 1 :
	    w->n > 0 ? w->places[0].uid : d->above;
	if (from < d->floor)
		from = d->floor;
	if (from <= d->above && compare_range(s, folder, w, from, d->above, f,
		err) == -1)
		return -1;
	if (from <= d->above)
		d->above = from - 1;
	d->hi = lo - 1;
	d->width = w->n > 0 ? WINDOW_ALL :
	    d->width < UINT32_MAX / 2 ? d->width * 2 : UINT32_MAX;
	return 0;
}

static int
compare_down(struct session *s, struct folder *folder, uint32_t exists,
    bool is_strict, struct window *w, struct findings *f, struct err *err)
{
	struct descent d = {
		.w = w,
		.is_strict = is_strict,
		.hi = exists,
		.width = WINDOW_ALL,
		.above = UINT32_MAX,
		.floor = folder->cursor.backfill_below,
	};

	if (d.floor == 0)
		d.floor = folder->cursor.uidnext;
	do {
		if (session_may_go_on(s, err) == -1 ||
		    compare_window(s, folder, &d, f, err) == -1)
			return -1;
	} while (d.hi > 0 && d.above >= d.floor && d.above > 0);
	return 0;
}

/* The newest messages are all that some servers show: what is older has not
 * been deleted (L138). */
static int
drop_out_of_view(struct session *s, uint32_t exists, struct window *w,
    struct findings *f, struct err *err)
{
	size_t i, n = 0;

	if (!imap_quirks(s->imap)->view_is_limited || exists == 0 ||
	    f->n_vanished == 0)
		return 0;
	window_reset(w);
	if (imap_scan_seq(
		s->imap, 1, 1, ITEM_FLAGS, windows_on_place, w, err) == -1)
		return -1;
	for (i = 0; w->n > 0 && i < f->n_vanished; i++)
		if (f->vanished[i] > w->places[0].uid)
			f->vanished[n++] = f->vanished[i];
	f->n_vanished = n;
	return 0;
}

static int
compare_all(struct session *s, struct folder *folder,
    struct imap_selected *selected, struct window *w, struct findings *f,
    struct err *err)
{
	struct err stale = ERR_INIT;
	int attempt;

	for (attempt = 1;; attempt++) {
		memset(f, 0, sizeof(*f));
		f->flag_scan_uid = folder->cursor.flag_scan_uid;
		if (compare_down(s, folder, selected->exists,
			attempt < ATTEMPTS, w, f, &stale) == 0)
			break;
		if (stale.kind != ERR_STALE || attempt == ATTEMPTS) {
			*err = stale;
			return -1;
		}
		if (imap_select(s->imap, folder->wire, NULL, selected,
			NULL, err) == -1)
			return -1;
	}
	if (attempt == ATTEMPTS) {
		/* What is shown is there; what is not may be. */
		log_warn(&s->log, "folder_id=%lld: %s; nothing is taken for "
		    "deleted", (long long)folder->id, stale.text);
		f->n_vanished = 0;
	}
	f->is_whole = attempt < ATTEMPTS;
	findings_sort(f);
	return drop_out_of_view(s, selected->exists, w, f, err);
}

int
windows_compare_all(struct session *s, struct folder *folder,
    struct imap_selected *selected, bool tell_apart, struct findings *f,
    struct err *err)
{
	struct window w = { .arena = arena_new("window"),
		.tell_apart = tell_apart };
	int rv;

	session_activity(s, "%s: comparing", folder->path);
	rv = compare_all(s, folder, selected, &w, f, err);
	arena_free(&w.arena);
	return rv;
}

/* --- some of it ---------------------------------------------------------- */

/* One window of older messages, by UID: the rows of ours say where it ends. */
static int
compare_older(struct session *s, struct folder *folder, uint32_t below,
    size_t limit, struct window *w, struct findings *f, struct err *err)
{
	uint32_t floor = folder->cursor.backfill_below;
	uint32_t from = folder->cursor.flag_scan_uid, to = below - 1;
	struct place *local;
	size_t n;

	if (floor == 0 || floor >= below)
		return 0;
	if (from < floor || from >= below)
		from = floor;
	if (session_db(s, err) == -1 ||
	    store_places(s->db.store, folder->id, from, to, limit, w->arena,
		&local, &n, err) == -1)
		return -1;
	session_db_rest(s);
	if (n == limit)
		to = local[n - 1].uid;
	f->flag_scan_uid = to + 1 >= below ? floor : to + 1;
	if (n == 0)
		return 0;
	w->places = NULL;
	w->n = w->cap = 0;
	if (imap_scan_uids(s->imap, from, to, window_items(w), windows_on_place,
		w, err) == -1)
		return -1;
	w->n = places_sort(w->places, w->n);
	if (w->is_overfull)
		return err_set(err, ERR_SERVER, "more messages shown than "
		    "were asked for");
	return compare_range(s, folder, w, from, to, f, err);
}

int
windows_compare_slice(struct session *s, struct folder *folder,
    struct findings *f, struct err *err)
{
	struct window w = { .arena = arena_new("slice"), .tell_apart = true,
		.has_ids = true };
	int rv = compare_older(s, folder, folder->cursor.uidnext,
	    WINDOW_SLICE, &w, f, err);

	findings_sort(f);
	arena_free(&w.arena);
	return rv;
}

static int
compare_some(struct session *s, struct folder *folder, uint32_t exists,
    struct window *w, struct findings *f, struct err *err)
{
	uint32_t floor = folder->cursor.backfill_below, from;

	if (imap_scan_seq(s->imap, exists - WINDOW_NEWEST + 1, exists,
		ITEM_FLAGS, windows_on_place, w, err) == -1)
		return -1;
	w->n = places_sort(w->places, w->n);
	if (w->n != WINDOW_NEWEST)
		return err_set(err, ERR_STALE, "%zu messages shown where %d "
		    "are said to be", w->n, WINDOW_NEWEST);
	from = w->places[0].uid;
	if (floor == 0)
		floor = folder->cursor.uidnext;
	if (compare_range(s, folder, w, from > floor ? from : floor,
		UINT32_MAX, f, err) == -1)
		return -1;
	return compare_older(s, folder, from, WINDOW_NEWEST, w, f, err);
}

int
windows_compare_some(struct session *s, struct folder *folder,
    const struct imap_selected *selected, struct findings *f,
    struct err *err)
{
	struct window w = { .arena = arena_new("window") };
	int rv;

	memset(f, 0, sizeof(*f));
	f->flag_scan_uid = folder->cursor.flag_scan_uid;
	rv = compare_some(s, folder, selected->exists, &w, f, err);
	findings_sort(f);
	arena_free(&w.arena);
	return rv;
}
