/*
 * look.c - phase one of a pass: what is new in one folder; flags and vanished
 * messages applied.
 *
 * Runs in: whoever syncs.  Blocks.
 *
 * Three things keep a server's delta honest.  Arithmetic: messages of the last
 * look - vanished + new must be EXISTS, else all is compared.  Order: the
 * mod-sequence moves only with the last of the new messages, so that whoever
 * dies in between is told of them again.  And what vanishes in great numbers
 * has been counted against EXISTS before it is believed.
 */
#include "sync/look.h"

#include "base/clock.h"
#include "sync/compare.h"
#include "sync/events.h"
#include "sync/risks.h"
#include "sync/windows.h"

static int
on_highest(void *arg, const struct place *p)
{
	uint32_t *highest = arg;

	if (p->uid > *highest)
		*highest = p->uid;
	return 0;
}

/* UIDNEXT where the server does not tell it (L142). */
static int
find_uidnext(struct session *s, struct look *look, struct err *err)
{
	uint32_t highest = 0;

	if (look->selected.uidnext != 0)
		return 0;
	if (look->selected.exists > 0 && remote_scan_seq(s->remote,
		look->selected.exists, look->selected.exists, ITEM_FLAGS,
		on_highest, &highest, err) == -1)
		return -1;
	look->selected.uidnext = highest + 1;
	return 0;
}

static uint64_t
modseq_to_keep(const struct session *s, const struct look *look)
{
	return plan_has_condstore(look->folder, remote_caps(s->remote)) ?
	    look->selected.highestmodseq : 0;
}

static int
commit(struct session *s, struct folder *folder, const struct findings *f,
    const struct cursor *cursor, struct err *err)
{
	struct commit_result result;

	if (session_may_go_on(s, err) == -1 || session_db(s, err) == -1)
		return -1;
	if (store_apply(s->db, &s->fence, folder, f->changed, f->n_changed,
		f->vanished, f->n_vanished, cursor, s->pass, &result,
		err) == -1)
		return -1;
	events_commit(s, folder->id, &result);
	return 0;
}

/* --- a folder from its start --------------------------------------------- */

static int
start_anew(struct session *s, struct look *look, bool is_remap,
    struct err *err)
{
	static const struct findings nothing;
	struct cursor cursor = { 0 };
	int rv;

	look->is_quiet = false;
	if (find_uidnext(s, look, err) == -1)
		return -1;
	/* A server that tells no UIDVALIDITY (L086) has one for ever. */
	cursor.uidvalidity = look->selected.uidvalidity != 0 ?
	    look->selected.uidvalidity : 1;
	cursor.uidnext = look->selected.uidnext;
	cursor.highestmodseq = modseq_to_keep(s, look);
	cursor.messages = look->selected.exists;
	cursor.flag_scan_uid = 1;
	cursor.backfill_below = look->selected.exists > 0 ? cursor.uidnext :
	    1;
	if (is_remap) {
		log_info(&s->log, "folder_id=%lld: UIDVALIDITY %u is now %u, "
		    "UIDNEXT %u is now %u: messages are recognised anew",
		    (long long)look->folder->id,
		    look->folder->cursor.uidvalidity, cursor.uidvalidity,
		    look->folder->cursor.uidnext, cursor.uidnext);
		rv = session_db(s, err) == -1 ? -1 : store_folder_remap(s->db,
		    &s->fence, look->folder, &cursor, err);
		if (rv == 0)
			events_folder(s, look->folder->id, "remapped");
	} else
		rv = commit(s, look->folder, &nothing, &cursor, err);
	look->base = look->target = cursor;
	look->needs_backfill = look->selected.exists > 0 ||
	    look->folder->is_remapping;
	return rv;
}

/* --- delta --------------------------------------------------------------- */

static void
split_changes(struct session *s, const struct folder *folder,
    const struct remote_changes *changes, struct findings *f)
{
	size_t i;

	for (i = 0; i < changes->n_changed; i++) {
		const struct place *p = &changes->changed[i];

		if (p->uid >= folder->cursor.uidnext)
			findings_add_fresh(s, f, p);
		else if (p->has_flags)
			findings_add_changed(s, f, p);
	}
	for (i = 0; i < changes->n_vanished; i++)
		findings_add_vanished(s, f, changes->vanished[i]);
	findings_sort(f);
}

/* VANISHED may name what we never had. */
static int
keep_known_vanished(struct session *s, const struct folder *folder,
    struct findings *f, struct err *err)
{
	size_t i, n = 0;
	bool *known;

	if (f->n_vanished == 0)
		return 0;
	known = ARENA_ARRAY(s->pass, bool, f->n_vanished);
	if (session_db(s, err) == -1 || store_known_uids(s->db, folder->id,
		f->vanished, f->n_vanished, known, err) == -1)
		return -1;
	for (i = 0; i < f->n_vanished; i++)
		if (known[i])
			f->vanished[n++] = f->vanished[i];
	f->n_vanished = n;
	return 0;
}

static uint32_t
count_above(const struct findings *f, uint32_t uidnext)
{
	size_t i, n = 0;

	for (i = 0; i < f->n_fresh; i++)
		n += f->fresh[i].uid >= uidnext;
	return (uint32_t)n;
}

static bool
adds_up(const struct look *look, const struct findings *f)
{
	int64_t was = look->folder->cursor.messages;
	int64_t is = look->selected.exists;
	int64_t came = count_above(f, look->folder->cursor.uidnext);

	return was - (int64_t)f->n_vanished + came == is;
}

static int
distrust(struct session *s, struct folder *folder, const char *reason,
    struct err *err)
{
	log_warn(&s->log, "folder_id=%lld: CONDSTORE is not trusted any more: "
	    "%s", (long long)folder->id, reason);
	folder->no_condstore = arena_strdup(s->facts, reason);
	if (session_db(s, err) == -1)
		return -1;
	return store_folder_distrust(s->db, &s->fence, folder->id, reason,
	    err);
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

static int
compare_instead(struct session *s, struct look *look, struct findings *f,
    struct err *err)
{
	const struct findings said = *f;

	look->is_quiet = false;
	log_debug(&s->log, "folder_id=%lld: %u messages - %zu vanished + %zu "
	    "new is not %u: comparing", (long long)look->folder->id,
	    look->folder->cursor.messages, f->n_vanished, f->n_fresh,
	    look->selected.exists);
	if (windows_compare_all(s, look->folder, &look->selected, f,
		err) == -1)
		return -1;
	if (look->action == PLAN_QRESYNC &&
	    named_the_living(said.vanished, said.n_vanished, f))
		return distrust(s, look->folder,
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
    struct remote_changes *changes, struct err *err)
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
	return remote_changed_since(s->remote, 1, UINT32_MAX, known, changes,
	    err);
}

static int
find_delta(struct session *s, struct look *look,
    struct remote_changes *changes, struct findings *f, struct err *err)
{
	memset(f, 0, sizeof(*f));
	f->flag_scan_uid = look->folder->cursor.flag_scan_uid;
	if (ask_changes(s, look, changes, err) == -1)
		return -1;
	if (changes->is_cut)
		return compare_instead(s, look, f, err);
	split_changes(s, look->folder, changes, f);
	if (keep_known_vanished(s, look->folder, f, err) == -1)
		return -1;
	return adds_up(look, f) ? 0 : compare_instead(s, look, f, err);
}

static int
find_by_comparison(struct session *s, struct look *look, struct findings *f,
    struct err *err)
{
	bool is_baseline = modseq_to_keep(s, look) != 0 || look->is_short;
	struct err failure = ERR_INIT;

	look->is_quiet = false;
	if (is_baseline || look->selected.exists <= WINDOW_NEWEST)
		return windows_compare_all(s, look->folder, &look->selected,
		    f, err);
	if (windows_compare_some(s, look->folder, &look->selected, f,
		&failure) == 0)
		return adds_up(look, f) ? 0 :
		    compare_instead(s, look, f, err);
	if (failure.kind == ERR_STALE)
		return windows_compare_all(s, look->folder, &look->selected,
		    f, err);
	*err = failure;
	return -1;
}

/* --- the cursor ---------------------------------------------------------- */

/* Those in quarantine are not news; the cursor passes them (quarantine.c). */
static void
leave_aside(struct session *s, struct look *look, struct findings *f)
{
	size_t i, n = 0;

	if (f->n_fresh > 0)
		look->seen_uidnext = f->fresh[f->n_fresh - 1].uid + 1;
	for (i = 0; s->n_risks > 0 && i < f->n_fresh; i++)
		if (!risks_has_message(s, look->folder->id, f->fresh[i].uid))
			f->fresh[n++] = f->fresh[i];
	if (s->n_risks > 0)
		f->n_fresh = n;
}

static void
aim(struct session *s, struct look *look, const struct findings *f)
{
	const struct cursor *c = &look->folder->cursor;
	struct cursor *target = &look->target, *base = &look->base;

	*target = *c;
	target->messages = look->selected.exists;
	target->highestmodseq = modseq_to_keep(s, look);
	target->flag_scan_uid = f->flag_scan_uid;
	if (look->selected.uidnext > target->uidnext)
		target->uidnext = look->selected.uidnext;
	if (look->seen_uidnext > target->uidnext)
		target->uidnext = look->seen_uidnext;
	*base = *target;
	if (look->n_fresh > 0) {
		base->uidnext = c->uidnext;
		base->highestmodseq = c->highestmodseq;
		base->messages -= count_above(f, c->uidnext);
	}
}

static bool
is_same_cursor(const struct cursor *a, const struct cursor *b)
{
	return a->uidvalidity == b->uidvalidity && a->uidnext == b->uidnext &&
	    a->highestmodseq == b->highestmodseq &&
	    a->backfill_below == b->backfill_below &&
	    a->messages == b->messages &&
	    a->flag_scan_uid == b->flag_scan_uid;
}

/* All was compared, and nothing is missing that the server shows: that it
 * counts more is no reason to compare again. */
static int
note_unseen(struct session *s, struct look *look, const struct findings *f,
    struct err *err)
{
	struct folder *folder = look->folder;
	int64_t more = (int64_t)look->selected.exists - folder->explained -
	    (folder->stored - (int64_t)f->n_vanished);

	if (more <= 0)
		return 0;
	log_info(&s->log, "folder_id=%lld: %lld messages are counted by the "
	    "server and not shown", (long long)folder->id, (long long)more);
	folder->explained += more;
	return session_db(s, err) == -1 ? -1 : store_folder_unseen(s->db,
	    &s->fence, folder->id, more, err);
}

static int
apply(struct session *s, struct look *look, struct findings *f,
    struct err *err)
{
	look->fresh = f->fresh;
	look->n_fresh = f->n_fresh;
	aim(s, look, f);
	/* The time of the comparison is kept with the cursor. */
	if (!look->is_short && f->n_changed == 0 && f->n_vanished == 0 &&
	    is_same_cursor(&look->base, &look->folder->cursor))
		return 0;
	if (commit(s, look->folder, f, &look->base, err) == -1)
		return -1;
	return look->is_short && f->n_fresh == 0 ?
	    note_unseen(s, look, f, err) : 0;
}

/* --- all together -------------------------------------------------------- */

static int
follow(struct session *s, struct look *look, struct remote_changes *changes,
    struct err *err)
{
	uint32_t uidvalidity = look->folder->cursor.uidvalidity;
	struct findings f;
	int rv;

	if (look->action == PLAN_COMPARE)
		rv = find_by_comparison(s, look, &f, err);
	else
		rv = find_delta(s, look, changes, &f, err);
	if (rv == -1)
		return -1;
	leave_aside(s, look, &f);
	if (look->action == PLAN_COMPARE)
		look->is_quiet = f.n_changed + f.n_vanished + f.n_fresh == 0 &&
		    !remote_is_disturbed(s->remote);
	/* The comparison may have selected again. */
	if (look->selected.uidvalidity != 0 &&
	    look->selected.uidvalidity != uidvalidity)
		return err_set(err, ERR_STALE, "UIDVALIDITY changed while "
		    "looking");
	return apply(s, look, &f, err);
}

int
look_at(struct session *s, struct folder *folder, struct look *look,
    struct err *err)
{
	unsigned caps = remote_caps(s->remote);
	const struct cursor *known = plan_known(folder, caps);
	struct remote_changes changes = { .arena = s->pass };
	struct view view;
	struct plan plan;

	memset(look, 0, sizeof(*look));
	look->folder = folder;
	session_activity(s, "%s: looking", folder->path);
	session_note(s, RISK_FOLDER, folder->id, 0, 0);
	s->selected_id = 0;
	if (remote_select(s->remote, folder->wire, known, &look->selected,
		&changes, err) == -1)
		return -1;
	s->selected_id = folder->id;
	look->is_quiet = true;
	view = view_of_selected(&look->selected);
	plan = plan_folder(folder, &view, caps, clock_wall_secs());
	look->action = plan.action;
	look->needs_backfill = plan.needs_backfill;
	look->is_short = plan.is_short;
	if (plan.is_short)
		log_warn(&s->log, "folder_id=%lld: %lld rows for %u messages, "
		    "and nothing is said to be new: comparing all",
		    (long long)folder->id, (long long)folder->stored,
		    folder->cursor.messages);
	log_debug(&s->log, "folder_id=%lld: %s", (long long)folder->id,
	    plan_action_name(plan.action));
	if (plan.distrust != NULL &&
	    distrust(s, folder, plan.distrust, err) == -1)
		return -1;
	if (plan.action == PLAN_FIRST || plan.action == PLAN_REMAP)
		return start_anew(s, look, plan.action == PLAN_REMAP, err);
	return follow(s, look, &changes, err);
}
