/*
 * look.c - phase one of a pass: what is new in one folder; flags and vanished
 * messages applied.
 *
 * Runs in: whoever syncs.  Blocks.
 *
 * What has changed delta.c finds.  Here is what is made of it, in an order that
 * a death at any point does not disturb: the mod-sequence moves only with the
 * last of the new messages, so that whoever comes next is told of them again.
 */
#include "sync/look.h"

#include "base/clock.h"
#include "sync/compare.h"
#include "sync/delta.h"
#include "sync/events.h"
#include "sync/risks.h"

/* A slice of the folder is compared message by message that often. */
#define SLICE_SECS 86400

static int
on_highest(void *arg, const struct place *p)
{
	uint32_t *highest = arg;

	if (p->uid > *highest)
		*highest = p->uid;
	return 0;
}

static uint32_t
uid_after(uint32_t uid)
{
	return uid < UINT32_MAX ? uid + 1 : uid;
}

/* UIDNEXT where the server does not tell it (L142). */
static int
find_uidnext(struct session *s, struct look *look, struct err *err)
{
	uint32_t highest = 0;

	look->selected.uidnext = look_uidnext(look);
	if (look->selected.uidnext != 0)
		return 0;
	if (look->selected.exists > 0 && imap_scan_seq(s->imap,
		look->selected.exists, look->selected.exists, ITEM_FLAGS,
		on_highest, &highest, err) == -1)
		return -1;
	look->selected.uidnext = uid_after(highest);
	return 0;
}

/* 0 where it is not told, or not believed. */
uint32_t
look_uidnext(const struct look *look)
{
	return plan_has_uidnext(look->folder, clock_wall_secs()) ?
	    look->selected.uidnext : 0;
}

uint64_t
look_modseq(const struct session *s, const struct look *look)
{
	return plan_has_condstore(look->folder, imap_caps(s->imap),
	    clock_wall_secs()) ?
	    look->selected.highestmodseq : 0;
}

int
look_distrust(struct session *s, struct folder *folder, enum distrust what,
    const char *reason, struct err *err)
{
	log_warn(&s->log, "folder_id=%lld: %s is not trusted for a while: %s",
	    (long long)folder->id, what == DISTRUST_CONDSTORE ? "CONDSTORE" :
	    "UIDNEXT", reason);
	if (session_db(s, err) == -1 ||
	    store_folder_distrust(
		s->db.store, &s->fence, folder, what, reason, err) == -1)
		return -1;
	if (what == DISTRUST_CONDSTORE)
		folder->no_condstore = arena_strdup(s->facts, reason);
	return 0;
}

static int
look_commit(struct session *s, struct folder *folder, const struct findings *f,
    const struct cursor *cursor, struct err *err)
{
	struct commit_result result;

	if (session_may_go_on(s, err) == -1 || session_db(s, err) == -1)
		return -1;
	if (store_apply(s->db.store, &s->fence, folder, f->changed,
		f->n_changed, f->vanished, f->n_vanished, cursor, s->pass,
		&result, err) == -1)
		return -1;
	events_commit(s, folder->id, &result);
	return 0;
}

/* --- a folder from its start --------------------------------------------- */

/* The rows' UIDs are void: taken from them in slices, by whoever looks. */
static int
make_void(struct session *s, struct look *look, struct err *err)
{
	struct folder *folder = look->folder;
	bool has_more = true;

	if (session_db(s, err) == -1)
		return -1;
	if (look->action == PLAN_REMAP) {
		log_info(&s->log, "folder_id=%lld: UIDVALIDITY %u is now %u: "
		    "messages are recognised anew", (long long)folder->id,
		    folder->cursor.uidvalidity, look->selected.uidvalidity);
		if (store_folder_remap(s->db.store, &s->fence, folder, err) ==
		    -1)
			return -1;
		events_folder(s, folder->id, "remapped");
	}
	while (has_more)
		if (session_may_go_on(s, err) == -1 ||
		    store_folder_void(
			s->db.store, &s->fence, folder, &has_more, err) == -1)
			return -1;
	return 0;
}

static int
start_anew(struct session *s, struct look *look, struct err *err)
{
	static const struct findings nothing;
	struct cursor cursor = { 0 };

	look->is_quiet = false;
	if (find_uidnext(s, look, err) == -1)
		return -1;
	if ((look->action == PLAN_REMAP || look->folder->is_remapping) &&
	    make_void(s, look, err) == -1)
		return -1;
	/* A server that tells no UIDVALIDITY (L086) has one for ever. */
	cursor.uidvalidity = look->selected.uidvalidity != 0 ?
	    look->selected.uidvalidity : 1;
	cursor.uidnext = look->selected.uidnext;
	cursor.highestmodseq = look_modseq(s, look);
	cursor.messages = look->selected.exists;
	cursor.flag_scan_uid = 1;
	cursor.backfill_below = look->selected.exists > 0 ? cursor.uidnext :
	    1;
	if (look_commit(s, look->folder, &nothing, &cursor, err) == -1)
		return -1;
	look->base = look->target = cursor;
	look->needs_backfill = look->selected.exists > 0 ||
	    look->folder->is_remapping;
	return 0;
}

/* --- before it is believed ----------------------------------------------- */

/* Now and then a slice is compared with what tells messages apart. */
static int
compare_slice(struct session *s, struct look *look, struct findings *f,
    struct err *err)
{
	if (look->needs_backfill || look->doubt != NULL ||
	    clock_wall_secs() - look->folder->verified_secs < SLICE_SECS)
		return 0;
	look->is_quiet = false;
	if (windows_compare_slice(s, look->folder, f, err) == -1)
		return -1;
	return session_db(s, err) == -1
		   ? -1
		   : store_folder_verified(
			 s->db.store, &s->fence, look->folder, false, err);
}

/*
 * All has been shown.  A UIDNEXT below what is there is wrong, and will be the
 * next time; the folder is what was seen of it, and doubted no more.
 */
static int
look_conclude(struct session *s, struct look *look, const struct findings *f,
    struct err *err)
{
	uint32_t told = look_uidnext(look);

	if (look->doubt == NULL || !f->is_whole)
		return 0;
	if (told != 0 && told < look->folder->cursor.uidnext &&
	    f->highest >= told && look_distrust(s, look->folder,
		DISTRUST_UIDNEXT, "there are messages above it", err) == -1)
		return -1;
	return session_db(s, err) == -1
		   ? -1
		   : store_folder_verified(
			 s->db.store, &s->fence, look->folder, true, err);
}

/* --- the cursor ---------------------------------------------------------- */

static uint32_t
count_above(const struct findings *f, uint32_t uidnext)
{
	size_t i, n = 0;

	for (i = 0; i < f->n_fresh; i++)
		n += f->fresh[i].uid >= uidnext;
	return (uint32_t)n;
}

/* UIDNEXT rises, but for a whole look that found less. */
static uint32_t
uidnext_now(const struct look *look, const struct findings *f)
{
	const struct cursor *c = &look->folder->cursor;
	uint32_t uidnext = c->uidnext, told = look_uidnext(look);

	if (f->is_whole && (f->highest > 0 || told > 0))
		uidnext = uid_after(f->highest);
	if (told > uidnext)
		uidnext = told;
	return look->seen_uidnext > uidnext ? look->seen_uidnext : uidnext;
}

/* Those in quarantine are not news; the cursor passes them (quarantine.c). */
static void
leave_aside(struct session *s, struct look *look, struct findings *f)
{
	size_t i, n = 0;

	if (f->n_fresh > 0)
		look->seen_uidnext = uid_after(f->fresh[f->n_fresh - 1].uid);
	for (i = 0; s->n_risks > 0 && i < f->n_fresh; i++)
		if (!risks_has_message(s, look->folder->id, f->fresh[i].uid))
			f->fresh[n++] = f->fresh[i];
	if (s->n_risks > 0)
		f->n_fresh = n;
}

static void
look_aim(struct session *s, struct look *look, const struct findings *f)
{
	const struct cursor *c = &look->folder->cursor;
	struct cursor *target = &look->target, *base = &look->base;

	*target = *c;
	target->messages = look->selected.exists;
	target->highestmodseq = look_modseq(s, look);
	target->flag_scan_uid = f->flag_scan_uid;
	target->uidnext = uidnext_now(look, f);
	*base = *target;
	if (look->n_fresh > 0) {
		if (base->uidnext > c->uidnext)
			base->uidnext = c->uidnext;
		base->highestmodseq = c->highestmodseq;
		base->messages -= count_above(f, base->uidnext);
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
note_unseen(struct session *s, struct look *look, struct err *err)
{
	struct folder *folder = look->folder;
	int64_t more = (int64_t)look->selected.exists - folder->explained -
	    folder->stored;

	if (more <= 0)
		return 0;
	log_info(&s->log, "folder_id=%lld: %lld messages are counted by the "
	    "server and not shown", (long long)folder->id, (long long)more);
	folder->explained += more;
	return session_db(s, err) == -1 ? -1
					: store_folder_unseen(s->db.store,
					      &s->fence, folder->id, more, err);
}

static int
look_apply(
    struct session *s, struct look *look, struct findings *f, struct err *err)
{
	size_t i;

	for (i = 0; i < f->n_replaced; i++)
		findings_add_vanished(s, f, f->replaced[i]);
	findings_sort(f);
	look->fresh = f->fresh;
	look->n_fresh = f->n_fresh;
	look_aim(s, look, f);
	/* The time of the comparison is kept with the cursor. */
	if (!look->is_short && f->n_changed == 0 && f->n_vanished == 0 &&
	    is_same_cursor(&look->base, &look->folder->cursor))
		return 0;
	if (look_commit(s, look->folder, f, &look->base, err) == -1)
		return -1;
	return look->is_short && f->n_fresh == 0 ?
	    note_unseen(s, look, err) : 0;
}

/* --- all together -------------------------------------------------------- */

static int
look_follow(struct session *s, struct look *look, struct imap_changes *changes,
    struct err *err)
{
	uint32_t uidvalidity = look->folder->cursor.uidvalidity;
	struct findings f;
	int rv;

	if (look->action == PLAN_COMPARE)
		rv = delta_by_comparison(s, look, &f, err);
	else
		rv = delta_from_server(s, look, changes, &f, err);
	if (rv == -1)
		return -1;
	leave_aside(s, look, &f);
	if (look->action == PLAN_COMPARE)
		look->is_quiet = f.n_changed + f.n_vanished + f.n_fresh == 0 &&
		    !imap_is_disturbed(s->imap);
	if (compare_slice(s, look, &f, err) == -1 ||
	    delta_confirm(s, look, &f, err) == -1)
		return -1;
	/* The comparison may have selected again. */
	if (look->selected.uidvalidity != 0 &&
	    look->selected.uidvalidity != uidvalidity)
		return err_set(err, ERR_STALE, "UIDVALIDITY changed while "
		    "looking");
	if (look_apply(s, look, &f, err) == -1)
		return -1;
	return look_conclude(s, look, &f, err);
}

int
look_at(struct session *s, struct folder *folder, struct look *look,
    struct err *err)
{
	unsigned caps = imap_caps(s->imap);
	const struct cursor *known = plan_known(folder, caps,
	    clock_wall_secs());
	struct imap_changes changes = { .arena = s->pass };
	struct view view;
	struct plan plan;

	memset(look, 0, sizeof(*look));
	look->folder = folder;
	session_activity(s, "%s: looking", folder->path);
	session_note(s, RISK_FOLDER, folder->id, 0, 0);
	s->selected_id = 0;
	if (imap_select(s->imap, folder->wire, known, &look->selected,
		&changes, err) == -1)
		return -1;
	s->selected_id = folder->id;
	look->is_quiet = true;
	view = view_of_selected(&look->selected);
	plan = plan_folder(folder, &view, caps, clock_wall_secs());
	look->action = plan.action;
	look->needs_backfill = plan.needs_backfill;
	look->is_short = plan.is_short;
	look->doubt = plan.doubt;
	if (plan.doubt != NULL)
		log_warn(&s->log, "folder_id=%lld: %s: comparing all, message "
		    "by message", (long long)folder->id, plan.doubt);
	else if (plan.is_short)
		log_warn(&s->log, "folder_id=%lld: %lld rows for %u messages, "
		    "and nothing is said to be new: comparing all",
		    (long long)folder->id, (long long)folder->stored,
		    folder->cursor.messages);
	log_debug(&s->log, "folder_id=%lld: %s", (long long)folder->id,
	    plan_action_name(plan.action));
	if (plan.distrust != NULL &&
	    look_distrust(s, folder, DISTRUST_CONDSTORE, plan.distrust,
		err) == -1)
		return -1;
	if (plan.action == PLAN_FIRST || plan.action == PLAN_REMAP)
		return start_anew(s, look, err);
	return look_follow(s, look, &changes, err);
}
