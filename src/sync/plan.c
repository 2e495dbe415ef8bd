/*
 * plan.c - what to do about a folder, from what the server says of it.
 *
 * Runs in: whoever syncs.  Pure.
 *
 * The idea: believe numbers only as far as they have been proved.  0 means
 * "not told" and is never taken for a change or for its absence (L086); any
 * other UIDVALIDITY is a new folder (L090); a mod-sequence that runs
 * backwards or is missing where it must be ends the trust in it for a while
 * (R-SYNC-3).  A UIDNEXT that fell is a reason to look at everything, never to
 * give anything up: the server was set back, or it errs.
 */
#include "sync/plan.h"

#define SHORT_SECS 900
#define LONG_SECS 86400

const char *
plan_action_name(enum plan_action action)
{
	static const char *const names[] = {
#define X(symbol, name) [symbol] = name,
		PLAN_ACTIONS(X)
#undef X
	};

	return (size_t)action < sizeof(names) / sizeof(names[0]) ?
	    names[action] : "?";
}

struct view
view_of_status(const struct imap_status *status)
{
	struct view v = {
		.is_known = status->is_known,
		.messages = status->messages,
		.uidnext = status->uidnext,
		.uidvalidity = status->uidvalidity,
		.highestmodseq = status->highestmodseq,
	};

	return v;
}

struct view
view_of_selected(const struct imap_selected *selected)
{
	struct view v = {
		.is_known = true,
		.is_selected = true,
		.messages = selected->exists,
		.uidnext = selected->uidnext,
		.uidvalidity = selected->uidvalidity,
		.highestmodseq = selected->highestmodseq,
	};

	return v;
}

bool
plan_has_condstore(const struct folder *folder, unsigned caps,
    int64_t now_secs)
{
	return (caps & IMAP_CONDSTORE) && (folder->no_condstore == NULL ||
	    folder->no_condstore[0] == '\0' ||
	    folder->no_condstore_until_secs <= now_secs);
}

bool
plan_has_uidnext(const struct folder *folder, int64_t now_secs)
{
	return folder->no_uidnext_until_secs <= now_secs;
}

const struct cursor *
plan_known(const struct folder *folder, unsigned caps, int64_t now_secs)
{
	if (!plan_has_condstore(folder, caps, now_secs) ||
	    !(caps & IMAP_QRESYNC) || folder->cursor.uidvalidity == 0 ||
	    folder->cursor.highestmodseq == 0)
		return NULL;
	return &folder->cursor;
}

static bool
is_same_uidvalidity(const struct folder *folder, const struct view *view)
{
	return view->uidvalidity == 0 ||
	    view->uidvalidity == folder->cursor.uidvalidity;
}

/* STATUS: is it as we left it? */
static bool
is_unchanged(const struct folder *folder, const struct view *view,
    unsigned caps, int64_t now_secs)
{
	const struct cursor *c = &folder->cursor;

	if (view->uidnext != c->uidnext || view->messages != c->messages ||
	    view->uidnext == 0)
		return false;
	/* Nothing there that could have changed. */
	if (view->messages == 0)
		return true;
	return plan_has_condstore(folder, caps, now_secs) &&
	    c->highestmodseq != 0 &&
	    view->highestmodseq == c->highestmodseq;
}

/*
 * All is said to be here, nothing is new, and there are fewer rows than
 * messages, or more: something was missed once, by us or by the server.  Looked
 * into now and then only; what is in quarantine, and what a comparison did not
 * find, is known to be missing.
 */
static bool
is_short(const struct folder *folder, const struct view *view,
    const struct plan *plan, int64_t now_secs)
{
	const struct cursor *c = &folder->cursor;
	int64_t pause = folder->stored < c->messages ? SHORT_SECS : LONG_SECS;

	if (plan->needs_backfill || view->messages != c->messages ||
	    (view->uidnext != 0 && view->uidnext != c->uidnext))
		return false;
	return (folder->stored + folder->explained < c->messages ||
	    folder->stored > c->messages) &&
	    now_secs - folder->last_poll_secs >= pause;
}

static const char *
doubt_of(const struct folder *folder, const struct view *view,
    const struct plan *plan)
{
	const struct cursor *c = &folder->cursor;

	if (folder->doubt != NULL && folder->doubt[0] != '\0')
		return folder->doubt;
	if (view->uidnext != 0 && view->uidnext < c->uidnext)
		return "UIDNEXT fell";
	return plan->distrust;
}

/* How to find changes in a folder whose UIDs are still good. */
static struct plan
plan_delta(const struct folder *folder, const struct view *view,
    unsigned caps, int64_t now_secs, struct plan plan)
{
	const struct cursor *c = &folder->cursor;

	plan.action = PLAN_COMPARE;
	if (!plan_has_condstore(folder, caps, now_secs))
		return plan;
	if (view->highestmodseq == 0) {
		/* An empty folder may well have none (L073). */
		if (view->messages > 0)
			plan.distrust = "no HIGHESTMODSEQ in a folder that "
			    "has messages";
		return plan;
	}
	if (view->highestmodseq < c->highestmodseq) {
		plan.distrust = "HIGHESTMODSEQ went backwards";
		return plan;
	}
	if (c->highestmodseq == 0)
		return plan; /* the first one: nothing to count from */
	plan.action = (caps & IMAP_QRESYNC) ? PLAN_QRESYNC : PLAN_CONDSTORE;
	return plan;
}

/* What STATUS or SELECT tells, as far as it is believed. */
static struct view
plan_believed(
    const struct folder *folder, const struct view *view, int64_t now_secs)
{
	struct view v = *view;

	if (!plan_has_uidnext(folder, now_secs))
		v.uidnext = 0;
	return v;
}

static struct plan
plan_selected(const struct folder *folder, const struct view *view,
    unsigned caps, int64_t now_secs, struct plan plan)
{
	if (folder->cursor.uidvalidity == 0) {
		plan.action = PLAN_FIRST;
		return plan;
	}
	if (!is_same_uidvalidity(folder, view)) {
		plan.action = PLAN_REMAP;
		return plan;
	}
	plan = plan_delta(folder, view, caps, now_secs, plan);
	plan.doubt = doubt_of(folder, view, &plan);
	plan.is_short = is_short(folder, view, &plan, now_secs);
	if (plan.is_short || plan.doubt != NULL)
		plan.action = PLAN_COMPARE;
	return plan;
}

struct plan
plan_folder(const struct folder *folder, const struct view *told,
    unsigned caps, int64_t now_secs)
{
	const struct cursor *c = &folder->cursor;
	const struct view view = plan_believed(folder, told, now_secs);
	struct plan plan = {
		.action = PLAN_SELECT,
		.needs_backfill = c->backfill_below != 1 ||
		    folder->is_remapping,
	};

	if (!folder->is_selectable || folder->parked_until_secs > now_secs) {
		plan.action = PLAN_PARKED;
		return plan;
	}
	if (view.is_selected)
		return plan_selected(folder, &view, caps, now_secs, plan);
	plan.is_short = is_short(folder, &view, &plan, now_secs);
	if (folder->doubt != NULL && folder->doubt[0] != '\0')
		plan.doubt = folder->doubt;
	if (view.is_known && c->uidvalidity != 0 && !plan.needs_backfill &&
	    !plan.is_short && plan.doubt == NULL &&
	    is_same_uidvalidity(folder, &view) &&
	    is_unchanged(folder, &view, caps, now_secs))
		plan.action = PLAN_NOTHING;
	return plan;
}
