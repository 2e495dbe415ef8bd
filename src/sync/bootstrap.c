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
			    f->parked_until_secs <= clock_wall_secs())
				ids[n++] = f->id;
		}
	*n_r = n;
	return ids;
}

/* For sync.progress: what there is, and what of it is stored already. */
static int
count(struct session *s, const int64_t *ids, size_t n, struct err *err)
{
	const char **wires = ARENA_ARRAY(s->pass, const char *, n + 1);
	struct remote_status *status = ARENA_ARRAY(s->pass,
	    struct remote_status, n + 1);
	size_t i;

	for (i = 0; i < n; i++)
		wires[i] = session_folder(s, ids[i])->wire;
	if (n > 0 && remote_status(s->remote, wires, n, status, err) == -1)
		return -1;
	s->progress.is_on = true;
	s->progress.done = s->progress.total = 0;
	for (i = 0; i < n; i++) {
		s->progress.total += status[i].messages;
		s->progress.done += session_folder(s, ids[i])->stored;
	}
	return 0;
}

/* One folder; its own trouble parks it and is no failure of the account. */
static int
fill(struct session *s, int64_t id, struct backfill_budget *budget,
    bool *is_complete_r, struct err *err)
{
	struct err failure = ERR_INIT;
	struct folder *folder;
	struct look look;

	if (pass_look(s, id, &look, &failure) == 0 &&
	    pass_fetch(s, &look, &failure) == 0 &&
	    pass_backfill(s, &look, budget, is_complete_r, &failure) == 0)
		return 0;
	if (!session_is_usable_after(s, &failure)) {
		*err = failure;
		return -1;
	}
	*is_complete_r = failure.kind != ERR_STALE;
	folder = session_folder(s, id);
	if (folder == NULL || (failure.kind != ERR_SERVER &&
		failure.kind != ERR_PERMANENT))
		return 0;
	return pass_park(s, folder, &failure, err);
}

static int
fill_all(struct session *s, struct backfill_budget *budget,
    bool *is_complete_r, struct err *err)
{
	int64_t *ids;
	bool is_complete;
	size_t i, n;

	ids = folder_order(s, &n);
	if (count(s, ids, n, err) == -1)
		return -1;
	*is_complete_r = true;
	for (i = 0; i < n; i++) {
		if (fill(s, ids[i], budget, &is_complete, err) == -1)
			return -1;
		if (!is_complete)
			*is_complete_r = false;
		if (!*is_complete_r && session_must_yield(s))
			return 0;
	}
	return 0;
}

static int
bootstrap(struct session *s, struct backfill_budget *budget,
    bool *is_complete_r, struct err *err)
{
	if (session_load(s, STATES, err) == -1)
		return -1;
	session_db_rest(s);
	if (session_connect(s, err) == -1 || pass_list(s, 0, err) == -1)
		return -1;
	session_db_rest(s);
	if (fill_all(s, budget, is_complete_r, err) == -1)
		return -1;
	s->progress.is_on = false;
	if (!*is_complete_r)
		return 0;
	if (pass_folders(s, SCOPE_ALL, budget, err) == -1)
		return -1;
	session_disconnect(s);
	if (session_db(s, err) == -1)
		return -1;
	return store_account_synced(s->db, &s->fence,
	    s->totals.last_mail_secs, err);
}

int
sync_bootstrap(struct session *s, int64_t deadline_mono_msecs,
    bool *is_complete_r, struct err *err)
{
	struct backfill_budget budget = {
		.messages = INT64_MAX,
		.deadline_mono_msecs = deadline_mono_msecs,
	};
	int rv;

	*is_complete_r = false;
	rv = bootstrap(s, &budget, is_complete_r, err);
	s->progress.is_on = false;
	session_note(s, RISK_NONE, 0, 0, 0);
	session_disconnect(s);
	session_db_rest(s);
	arena_reset(s->pass);
	return rv;
}
