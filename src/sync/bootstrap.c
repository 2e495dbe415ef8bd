/*
 * bootstrap.c - a new account: everything, newest first.
 *
 * Runs in: job children.  Blocks.
 *
 * INBOX first, then the special folders, then the others; what arrives
 * meanwhile is picked up by an ordinary pass at the end, so that the account
 * is current when it becomes live (R-JOB-8).  Nothing is remembered but the
 * cursors: whoever comes next goes on there.
 */
#include "sync/pass.h"

#include "base/clock.h"
#include "sync/events.h"
#include "sync/quarantine.h"
#include "sync/refusals.h"
#include "sync/risks.h"

#define STATES ((1u << ACCOUNT_NEW) | (1u << ACCOUNT_BOOTSTRAPPING))

/* INBOX first, then the folders with a role, then the others. */
static int64_t *
folder_order(struct session *s, size_t *n_r)
{
	int64_t *ids = ARENA_ARRAY(s->pass, int64_t, s->n_folders + 1);
	size_t i, n = 0;
	int round;

	for (round = 0; round < 3; round++)
		for (i = 0; i < s->n_folders; i++) {
			const struct folder *f = &s->folders[i];
			int rank = f->role == ROLE_INBOX ? 0 :
			    f->role != ROLE_NONE && f->role != ROLE_ALL ? 1 :
			    2;

			if (rank == round && f->is_selectable &&
			    f->missing_since_secs == 0 &&
			    f->parked_until_secs <= clock_wall_secs() &&
			    !risks_has_folder(s, f->id))
				ids[n++] = f->id;
		}
	*n_r = n;
	return ids;
}

struct filling {
	int64_t *ids; /* of the folders */
	size_t n;
	struct refusals refusals;
};

/* For sync.progress: what there is, and what of it is stored already. */
static int
bootstrap_count(struct session *s, struct filling *w, struct err *err)
{
	struct folder **asked = ARENA_ARRAY(s->pass, struct folder *,
	    w->n + 1);
	const char **wires = ARENA_ARRAY(s->pass, const char *, w->n + 1);
	struct imap_status *status = ARENA_ARRAY(s->pass,
	    struct imap_status, w->n + 1);
	size_t i;

	for (i = 0; i < w->n; i++) {
		asked[i] = session_folder(s, w->ids[i]);
		wires[i] = asked[i]->wire;
	}
	if (w->n > 0 && imap_status(s->imap, wires, w->n, status,
		err) == -1) {
		pass_note_unanswered(s, asked, status, w->n);
		return -1;
	}
	s->sync->progress.is_on = true;
	s->sync->progress.done = s->sync->progress.total = 0;
	for (i = 0; i < w->n; i++) {
		s->sync->progress.total += status[i].messages;
		s->sync->progress.done += asked[i]->stored;
	}
	return 0;
}

/* One folder; its own trouble parks it and is no failure of the account. */
static int
bootstrap_fill(struct session *s, struct filling *w, size_t i,
    struct backfill_budget *budget, bool *is_complete_r, struct err *err)
{
	struct err failure = ERR_INIT;
	struct look look;

	if (pass_look(s, w->ids[i], &look, &failure) == 0 &&
	    pass_fetch(s, &look, &failure) == 0 &&
	    pass_backfill(s, &look, budget, is_complete_r, &failure) == 0)
		return refusals_went_well(s, &w->refusals, err);
	if (!session_is_usable_after(s, &failure)) {
		*err = failure;
		return -1;
	}
	session_note(s, RISK_NONE, 0, 0, 0);
	*is_complete_r = failure.kind != ERR_STALE;
	return refusals_add(s, &w->refusals, w->ids[i], &failure, err);
}

static int
fill_all(struct session *s, struct backfill_budget *budget,
    bool *is_complete_r, struct err *err)
{
	struct filling w;
	bool is_complete;
	size_t i;

	w.ids = folder_order(s, &w.n);
	refusals_init(s, &w.refusals, w.n);
	if (bootstrap_count(s, &w, err) == -1)
		return -1;
	*is_complete_r = true;
	for (i = 0; i < w.n; i++) {
		if (bootstrap_fill(s, &w, i, budget, &is_complete, err) == -1)
			return -1;
		if (!is_complete)
			*is_complete_r = false;
		if (!*is_complete_r && session_must_yield(s))
			return 0;
	}
	return refusals_end(s, &w.refusals, err);
}

static int
sync_sync_bootstrap(struct session *s, struct backfill_budget *budget,
    bool *is_complete_r, struct err *err)
{
	if (session_load(s, STATES, err) == -1)
		return -1;
	session_db_rest(s);
	if (sync_connect(s, err) == -1 ||
	    (!s->sync->has_listed && pass_list(s, 0, err) == -1))
		return -1;
	s->sync->has_listed = true;
	session_db_rest(s);
	if (fill_all(s, budget, is_complete_r, err) == -1)
		return -1;
	s->sync->progress.is_on = false;
	if (!*is_complete_r)
		return 0;
	if (pass_folders(s, SCOPE_ALL, budget, err) == -1 ||
	    quarantine_retry(s, budget, err) == -1)
		return -1;
	if (s->sync->totals.has_more)
		*is_complete_r = false;
	session_disconnect(s);
	if (session_db(s, err) == -1)
		return -1;
	return store_account_synced(
	    s->db.store, &s->fence, s->sync->totals.last_mail_secs, err);
}

int
sync_bootstrap(struct session *s, int64_t deadline_mono_msecs,
    bool *is_complete_r, struct err *err)
{
	struct backfill_budget budget = {
		.messages = INT64_MAX,
		.deadline_mono_msecs = deadline_mono_msecs,
	};
	struct err failure = ERR_INIT;
	bool goes_on = true;
	int rv = -1;

	quarantine_begin(s);
	while (rv == -1 && goes_on) {
		*is_complete_r = s->sync->totals.has_more = false;
		failure.kind = ERR_NONE;
		rv = sync_sync_bootstrap(s, &budget, is_complete_r, &failure);
		s->sync->progress.is_on = false;
		goes_on = quarantine_goes_on(s, &failure);
	}
	if (rv == -1)
		*err = failure;
	return rv;
}
