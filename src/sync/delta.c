/*
 * delta.c - what has changed in a folder since the last look.
 *
 * Runs in: whoever syncs.  Blocks.
 *
 * Three things keep a server's word honest.  Arithmetic: messages of the last
 * look - vanished + new must be EXISTS, else the missing ones are looked for
 * (missing.h), or all is compared.  Rows, not UIDNEXT, say what is new.  And
 * whatever seems to be gone is asked for once more: nothing is deleted that the
 * server still shows.
 */
#include "sync/delta.h"

#include "base/clock.h"
#include "conf/quirks.h"
#include "sync/compare.h"
#include "sync/missing.h"
#include "sync/risks.h"

/* So few that telling messages apart costs next to nothing. */
#define SMALL_FOLDER 200
#define MISSING_MAX 500 /* that many are looked for one by one */

/* Which of these UIDs have rows. */
static int
find_rows(struct session *s, const struct folder *folder,
    const uint32_t *uids, size_t n, bool **known_r, struct err *err)
{
	*known_r = ARENA_ARRAY(s->pass, bool, n + 1);
	if (n == 0)
		return 0;
	return session_db(s, err) == -1
		   ? -1
		   : store_known_uids(
			 s->db.store, folder->id, uids, n, *known_r, err);
}

/* What has no row is new, whatever UIDNEXT has ever been said to be. */
static int
split_changed(struct session *s, const struct folder *folder,
    struct imap_changes *changes, struct findings *f, struct err *err)
{
	uint32_t *uids, floor = folder->cursor.backfill_below;
	size_t i, n = 0;
	bool *known;

	changes->n_changed = places_sort(changes->changed,
	    changes->n_changed);
	uids = ARENA_ARRAY(s->pass, uint32_t, changes->n_changed + 1);
	while (n < changes->n_changed &&
	    changes->changed[n].uid < folder->cursor.uidnext) {
		uids[n] = changes->changed[n].uid;
		n++;
	}
	if (find_rows(s, folder, uids, n, &known, err) == -1)
		return -1;
	for (i = 0; i < changes->n_changed; i++) {
		const struct place *p = &changes->changed[i];

		if (i < n && known[i]) {
			if (p->has_flags)
				findings_add_changed(s, f, p);
		} else if (i >= n || (floor != 0 && p->uid >= floor))
			findings_add_fresh(s, f, p);
	}
	return 0;
}

/* VANISHED may name what we never had. */
static int
split_vanished(struct session *s, const struct folder *folder,
    const struct imap_changes *changes, struct findings *f,
    struct err *err)
{
	size_t i;
	bool *known;

	if (find_rows(s, folder, changes->vanished, changes->n_vanished,
		&known, err) == -1)
		return -1;
	for (i = 0; i < changes->n_vanished; i++)
		if (known[i])
			findings_add_vanished(s, f, changes->vanished[i]);
	findings_sort(f);
	return 0;
}

/* New ones that the count of the last look did not include: those that were
 * put aside it did. */
static size_t
count_came(const struct session *s, const struct look *look,
    const struct findings *f)
{
	size_t i, n = 0;

	for (i = 0; i < f->n_fresh; i++)
		n += f->fresh[i].uid >= look->folder->cursor.uidnext ||
		    !risks_has_message(s, look->folder->id, f->fresh[i].uid);
	return n;
}

static bool
adds_up(const struct session *s, const struct look *look,
    const struct findings *f)
{
	int64_t was = look->folder->cursor.messages;
	int64_t is = look->selected.exists;

	return was - (int64_t)f->n_vanished +
	    (int64_t)count_came(s, look, f) == is;
}

/* The server's VANISHED against what is really gone (iCloud, L075). */
static bool
named_the_living(const uint32_t *said, size_t n_said, const struct findings *f)
{
	size_t i;

	for (i = 0; i < n_said; i++)
		if (!uids_have(f->vanished, f->n_vanished, said[i]))
			return true;
	return false;
}

/* Can sequence numbers tell?  Only when all messages have rows but for new
 * ones, which come after them all; how many of ours are missing. */
static uint32_t
count_missing(struct session *s, const struct look *look,
    const struct findings *f)
{
	const struct folder *folder = look->folder;
	int64_t theirs = (int64_t)look->selected.exists -
	    (int64_t)f->n_fresh;

	if (look->needs_backfill || theirs < 0 ||
	    folder->stored != folder->cursor.messages ||
	    folder->stored <= theirs ||
	    folder->stored - theirs > MISSING_MAX ||
	    imap_quirks(s->imap)->view_is_limited ||
	    (f->n_fresh > 0 && f->fresh[0].uid < folder->cursor.uidnext))
		return 0;
	return (uint32_t)(folder->stored - theirs);
}

/* Asks until it is known; false: it cannot be known in this way. */
static int
ask_missing(struct session *s, struct missing *m, bool *is_known_r,
    struct err *err)
{
	uint32_t seqs[MISSING_FLIGHT], uids[MISSING_FLIGHT];
	struct err no = ERR_INIT;
	size_t n;

	*is_known_r = false;
	while ((n = missing_ask(m, seqs)) > 0) {
		if (imap_uids_at(s->imap, seqs, n, uids, &no) == -1) {
			if (no.kind == ERR_SERVER)
				return 0;
			*err = no;
			return -1;
		}
		if (missing_tell(m, seqs, uids, n) == -1)
			return 0;
	}
	*is_known_r = true;
	return 0;
}

/* The vanished ones by a few questions instead of all the flags. */
static int
find_missing(struct session *s, struct look *look, struct findings *f,
    bool *is_found_r, struct err *err)
{
	uint32_t n_missing = count_missing(s, look, f);
	const struct uid_range *last;
	struct uid_range *ranges;
	struct missing *m;
	const uint32_t *uids;
	size_t n, i;

	*is_found_r = false;
	if (n_missing == 0)
		return 0;
	if (session_db(s, err) == -1 ||
	    store_uid_ranges(
		s->db.store, look->folder->id, s->pass, &ranges, &n, err) == -1)
		return -1;
	session_db_rest(s);
	last = n > 0 ? &ranges[n - 1] : NULL;
	if (last == NULL || last->before + (last->last - last->first) + 1 !=
		look->folder->stored)
		return 0; /* a sibling has changed it */
	m = missing_new(s->pass, ranges, n, (uint32_t)look->folder->stored -
	    n_missing);
	if (ask_missing(s, m, is_found_r, err) == -1)
		return -1;
	if (!*is_found_r)
		return 0;
	uids = missing_uids(m, &n);
	f->n_vanished = 0;
	for (i = 0; i < n; i++)
		findings_add_vanished(s, f, uids[i]);
	return 0;
}

static int
compare_instead(struct session *s, struct look *look, struct findings *f,
    struct err *err)
{
	const struct findings said = *f;
	uint32_t *said_vanished = ARENA_ARRAY(s->pass, uint32_t,
	    f->n_vanished + 1);
	bool is_found;

	look->is_quiet = false;
	if (said.n_vanished > 0)
		memcpy(said_vanished, said.vanished,
		    said.n_vanished * sizeof(*said_vanished));
	log_debug(&s->log, "folder_id=%lld: %u messages - %zu vanished + %zu "
	    "new is not %u: comparing", (long long)look->folder->id,
	    look->folder->cursor.messages, f->n_vanished, f->n_fresh,
	    look->selected.exists);
	if (find_missing(s, look, f, &is_found, err) == -1)
		return -1;
	if (!is_found && windows_compare_all(s, look->folder, &look->selected,
		false, f, err) == -1)
		return -1;
	if (look->action == PLAN_QRESYNC &&
	    named_the_living(said_vanished, said.n_vanished, f))
		return look_distrust(s, look->folder, DISTRUST_CONDSTORE,
		    "VANISHED named messages that are there", err);
	return 0;
}

/*
 * What has changed since the cursor.  QRESYNC tells with the SELECT, but of
 * the UIDs we named only, which are those below the cursor (RFC 7162,
 * 3.2.5.2): new ones are asked for.  Where it announces news and tells none,
 * it may not have been in force: ask.
 */
static int
ask_changes(struct session *s, struct look *look,
    struct imap_changes *changes, struct err *err)
{
	uint64_t known = look->folder->cursor.highestmodseq;

	if (look->selected.highestmodseq == known)
		return 0;
	if (look->action == PLAN_QRESYNC &&
	    look->selected.uidnext == look->folder->cursor.uidnext &&
	    changes->n_changed + changes->n_vanished > 0)
		return 0;
	look->is_quiet = false;
	memset(changes, 0, sizeof(*changes));
	changes->arena = s->pass;
	return imap_changed_since(s->imap, 1, UINT32_MAX, known, changes,
	    err);
}

int
delta_from_server(struct session *s, struct look *look,
    struct imap_changes *changes, struct findings *f, struct err *err)
{
	memset(f, 0, sizeof(*f));
	f->flag_scan_uid = look->folder->cursor.flag_scan_uid;
	if (ask_changes(s, look, changes, err) == -1)
		return -1;
	if (changes->is_cut)
		return compare_instead(s, look, f, err);
	if (split_changed(s, look->folder, changes, f, err) == -1 ||
	    split_vanished(s, look->folder, changes, f, err) == -1)
		return -1;
	return adds_up(s, look, f) ? 0 : compare_instead(s, look, f, err);
}

int
delta_by_comparison(struct session *s, struct look *look, struct findings *f,
    struct err *err)
{
	bool is_whole = look_modseq(s, look) != 0 || look->is_short ||
	    look->doubt != NULL || look->selected.exists <= WINDOW_NEWEST;
	bool tell_apart = look->doubt != NULL ||
	    look->selected.exists <= SMALL_FOLDER;
	struct err failure = ERR_INIT;

	look->is_quiet = false;
	if (is_whole)
		return windows_compare_all(s, look->folder, &look->selected,
		    tell_apart, f, err);
	if (windows_compare_some(s, look->folder, &look->selected, f,
		&failure) == 0)
		return adds_up(s, look, f) ? 0 :
		    compare_instead(s, look, f, err);
	if (failure.kind == ERR_STALE)
		return windows_compare_all(s, look->folder, &look->selected,
		    tell_apart, f, err);
	*err = failure;
	return -1;
}

/* --- before anything is deleted ------------------------------------------- */

struct shown {
	struct findings *f;
	bool *is_there; /* of each vanished one */
	size_t n;
};

static int
on_shown(void *arg, const struct place *p)
{
	struct shown *shown = arg;
	size_t lo = 0, hi = shown->f->n_vanished, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (shown->f->vanished[mid] < p->uid)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < shown->f->n_vanished && shown->f->vanished[lo] == p->uid &&
	    !shown->is_there[lo]) {
		shown->is_there[lo] = true;
		shown->n++;
	}
	return 0;
}

/*
 * The vanished ones are asked for by their UIDs.  What the server still shows
 * is there, whatever it said or counted before.
 */
int
delta_confirm(struct session *s, struct look *look, struct findings *f,
    struct err *err)
{
	struct shown shown = { .f = f };
	struct err no = ERR_INIT;
	bool is_refused;
	size_t i, n = 0;

	if (f->n_vanished == 0)
		return 0;
	shown.is_there = ARENA_ARRAY(s->pass, bool, f->n_vanished);
	session_db_rest(s);
	if (imap_scan_set(s->imap, f->vanished, f->n_vanished, 0,
		on_shown, &shown, &is_refused, &no) == -1 && !is_refused) {
		*err = no;
		return -1;
	}
	/* Some say NO where none of them is there; others because they are
	 * busy.  Believed only where the count agrees. */
	if (no.kind != ERR_NONE && !adds_up(s, look, f)) {
		f->is_whole = false;
		f->n_vanished = 0;
		return 0;
	}
	if (imap_is_disturbed(s->imap))
		look->is_quiet = false;
	if (shown.n == 0)
		return 0;
	log_warn(&s->log, "folder_id=%lld: %zu of %zu messages that seemed to "
	    "have gone are there", (long long)look->folder->id, shown.n,
	    f->n_vanished);
	for (i = 0; i < f->n_vanished; i++)
		if (!shown.is_there[i])
			f->vanished[n++] = f->vanished[i];
	f->n_vanished = n;
	f->is_whole = false;
	return 0;
}
