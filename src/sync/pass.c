/*
 * pass.c - one transient pass over an account, and its steps.
 *
 * Runs in: pool and job children.  Blocks; a straight line.
 *
 * A folder that a sibling changed meanwhile (ERR_STALE) is looked at again from
 * the start; nothing of what was found before counts then.
 */
#include "sync/pass.h"

#include "base/clock.h"
#include "base/text.h"
#include "sync/events.h"
#include "sync/folders.h"
#include "sync/quarantine.h"
#include "sync/risks.h"

#define REPLANS 6 /* ERR_STALE in a row before a folder waits */

/* A folder that appeared on the server is backfilled by passes, a piece at a
 * time, so that the other folders of the account do not wait for it. */
#define BACKFILL_MESSAGES 20000
#define BACKFILL_MSECS 60000


#define FOLDERS_LOGGED 20 /* of one LIST */

/* --- folders ------------------------------------------------------------- */

static int
status_of_unknown(struct session *s, const struct imap_folder *listed,
    size_t n, struct imap_status *status_r, struct err *err)
{
	const char **wires = ARENA_ARRAY(s->pass, const char *, n + 1);
	size_t *at = ARENA_ARRAY(s->pass, size_t, n + 1);
	bool *unknown = ARENA_ARRAY(s->pass, bool, n + 1);
	struct imap_status *answers;
	size_t i, n_asked = 0;

	folders_unknown(s->pass, s->folders, s->n_folders, listed, n, unknown);
	for (i = 0; i < n; i++)
		if (unknown[i] && listed[i].is_selectable) {
			at[n_asked] = i;
			wires[n_asked++] = listed[i].wire;
		}
	/* STATUS only serves to tell a rename from a new folder. */
	if (n_asked == 0 || s->n_folders == 0)
		return 0;
	if (s->sync->skips_names)
		return 0;
	answers = ARENA_ARRAY(s->pass, struct imap_status, n_asked);
	s->sync->is_naming = true;
	if (imap_status(s->imap, wires, n_asked, answers, err) == -1)
		return -1;
	s->sync->is_naming = false;
	for (i = 0; i < n_asked; i++)
		status_r[at[i]] = answers[i];
	return 0;
}

static void
tell_folders(struct session *s, const struct folder_op *ops, size_t n)
{
	static const char *const changes[] = {
		[FOLDER_CREATE] = "created",
		[FOLDER_RENAME] = "renamed",
		[FOLDER_UPDATE] = "updated",
		[FOLDER_MISSING] = "missing",
		[FOLDER_VANISH] = "deleted",
	};
	size_t i, n_told = 0;

	for (i = 0; i < n; i++) {
		if (ops[i].is_refused)
			continue;
		if (n_told++ < FOLDERS_LOGGED)
			log_info(&s->log, "folder_id=%lld: %s on the server",
			    (long long)ops[i].id, changes[ops[i].kind]);
		if (ops[i].kind != FOLDER_MISSING)
			events_folder(s, ops[i].id, changes[ops[i].kind]);
	}
	if (n_told > FOLDERS_LOGGED)
		log_info(&s->log, "and %zu more folders on the server",
		    n_told - FOLDERS_LOGGED);
}

static void
tell_refused(struct session *s, const struct folder_refusal *refused)
{
	char name[120];

	if (refused->n == 0)
		return;
	text_clean_line(name, sizeof(name), refused->first->path,
	    strlen(refused->first->path));
	log_warn(&s->log, "%zu folders left out, \"%s\" first: %s",
	    refused->n, name, refused->why.text);
}

void
pass_note_unanswered(struct session *s, struct folder *const *asked,
    const struct imap_status *status, size_t n)
{
	size_t i;

	for (i = 0; i < n && status[i].is_answered; i++)
		;
	if (i < n)
		session_note(s, RISK_FOLDER, asked[i]->id, 0, 0);
}

/* One flight: LIST, and STATUS of the folders known from before. */
static int
ask_list(struct session *s, unsigned scope, struct imap_folder **listed_r,
    size_t *n_r, struct err *err)
{
	struct folder **chosen = ARENA_ARRAY(s->pass, struct folder *,
	    s->n_folders + 1);
	size_t i, n = scope != 0 ? pass_choose(s, scope, chosen) : 0;
	const char **wires = ARENA_ARRAY(s->pass, const char *, n + 1);
	struct imap_flight along = { .wires = wires, .n = n,
		.status = ARENA_ARRAY(s->pass, struct imap_status, n + 1) };

	for (i = 0; i < n; i++)
		wires[i] = chosen[i]->wire;
	s->sync->is_listing = true;
	if (imap_list_with(s->imap, n > 0 ? &along : NULL, s->pass,
		listed_r, n_r, err) == -1) {
		s->sync->is_listing = !along.is_listed;
		if (along.is_listed)
			pass_note_unanswered(s, chosen, along.status, n);
		return -1;
	}
	s->sync->is_listing = false;
	s->sync->ahead = ARENA_ARRAY(s->pass, struct ahead, n + 1);
	s->sync->n_ahead = along.n_answered;
	for (i = 0; i < s->sync->n_ahead; i++)
		s->sync->ahead[i] = (struct ahead){.wire = chosen[i]->wire,
		    .folder_id = chosen[i]->id,
		    .status = along.status[i]};
	return 0;
}

/* What was in folders that are gone; interrupted, the clerk does it. */
static int
empty_vanished(struct session *s, const struct folder_op *ops, size_t n,
    struct err *err)
{
	struct commit_result result;
	bool has_more;
	size_t i;

	for (i = 0; i < n; i++) {
		has_more = ops[i].kind == FOLDER_VANISH && !ops[i].is_refused;
		while (has_more) {
			if (session_may_go_on(s, err) == -1 ||
			    store_folder_empty(s->db.store, &s->fence,
				ops[i].id, s->pass, &result, &has_more,
				err) == -1)
				return -1;
			events_commit(s, ops[i].id, &result);
		}
	}
	return 0;
}

int
pass_list(struct session *s, unsigned scope, struct err *err)
{
	struct imap_folder *listed;
	struct imap_status *status;
	struct folder_refusal refused;
	struct folder_op *ops;
	size_t n, n_ops;
	bool is_whole;

	session_activity(s, "listing folders");
	if (ask_list(s, scope, &listed, &n, err) == -1)
		return -1;
	folders_normalise(s->pass, listed, n, &listed, &n, &is_whole);
	if (!is_whole)
		log_warn(&s->log, "LIST does not show INBOX: no folder is "
		    "taken for deleted");
	is_whole = is_whole && !imap_list_is_cut(s->imap);
	status = ARENA_ARRAY(s->pass, struct imap_status, n);
	if (status_of_unknown(s, listed, n, status, err) == -1)
		return -1;
	folders_diff(s->pass, s->conf, s->folders, s->n_folders, listed,
	    status, n, is_whole, &ops, &n_ops);
	if (n_ops == 0)
		return 0;
	if (session_may_go_on(s, err) == -1 || session_db(s, err) == -1 ||
	    store_folders_write(
		s->db.store, &s->fence, ops, n_ops, &refused, err) == -1)
		return -1;
	tell_refused(s, &refused);
	tell_folders(s, ops, n_ops);
	if (empty_vanished(s, ops, n_ops, err) == -1)
		return -1;
	return session_reload(s, err);
}

int
pass_park(struct session *s, struct folder *folder, const struct err *failure,
    struct err *err)
{
	struct risk risk = { .folder_id = folder->id, .step = RISK_FOLDER };

	if (risks_refused_folder(s, &risk, failure->text, err) == -1)
		return -1;
	folder->parked_until_secs = risk.next_secs;
	return 0;
}

/* --- one folder ---------------------------------------------------------- */

static int
reload_folder(struct session *s, int64_t id, struct folder **folder_r,
    struct err *err)
{
	if (session_reload(s, err) == -1)
		return -1;
	session_db_rest(s);
	*folder_r = session_folder(s, id);
	if (*folder_r == NULL)
		return err_set(err, ERR_GONE, "folder %lld is gone",
		    (long long)id);
	return 0;
}

/* As often as it was planned anew the server refused to show the messages:
 * then their numbers have not changed, it means it. */
static int
pass_gave_up(const struct session *s, int plans, const struct err *stale,
    struct err *err)
{
	*err = *stale;
	if (plans == REPLANS && stale->kind == ERR_STALE &&
	    s->sync->is_scan_refused)
		err->kind = ERR_SERVER;
	return -1;
}

int
pass_look(struct session *s, int64_t folder_id, struct look *look,
    struct err *err)
{
	struct folder *folder = session_folder(s, folder_id);
	struct err stale = ERR_INIT;
	int i;

	if (folder == NULL)
		return err_set(err, ERR_GONE, "folder %lld is gone",
		    (long long)folder_id);
	for (i = 0; i < REPLANS; i++) {
		session_db_pause(s);
		if (look_at(s, folder, look, &stale) == 0) {
			session_note(s, RISK_NONE, 0, 0, 0);
			s->sync->totals.folders_polled++;
			s->sync->losses = 0;
			return 0;
		}
		if (stale.kind != ERR_STALE)
			break;
		if (reload_folder(s, folder_id, &folder, err) == -1)
			return -1;
	}
	return pass_gave_up(s, i, &stale, err);
}

/* The folder of a look, selected, with the UIDs that the look saw (L088). */
static int
select_again(struct session *s, struct look *look, struct err *err)
{
	struct imap_selected selected;

	if (s->selected_id == look->folder->id)
		return 0;
	s->selected_id = 0;
	session_db_rest(s);
	session_note(s, RISK_FOLDER, look->folder->id, 0, 0);
	if (imap_select(s->imap, look->folder->wire, NULL, &selected, NULL,
		err) == -1)
		return -1;
	s->selected_id = look->folder->id;
	if (selected.uidvalidity != 0 && selected.uidvalidity !=
	    look->folder->cursor.uidvalidity)
		return err_set(err, ERR_STALE, "UIDVALIDITY changed between "
		    "two looks");
	look->selected.exists = selected.exists;
	return 0;
}

int
pass_fetch(struct session *s, struct look *look, struct err *err)
{
	struct err stale = ERR_INIT;
	int i;

	for (i = 0; i < REPLANS; i++) {
		if (look->n_fresh == 0)
			return 0;
		if (select_again(s, look, &stale) == 0 &&
		    backfill_fresh(s, look, &stale) == 0)
			return 0;
		if (stale.kind != ERR_STALE)
			break;
		if (reload_folder(s, look->folder->id, &look->folder,
			err) == -1 ||
		    pass_look(s, look->folder->id, look, err) == -1)
			return -1;
	}
	return pass_gave_up(s, i, &stale, err);
}

int
pass_backfill(struct session *s, struct look *look,
    struct backfill_budget *budget, bool *is_complete_r, struct err *err)
{
	struct err stale = ERR_INIT;
	int i;

	*is_complete_r = false;
	for (i = 0; i < REPLANS; i++) {
		if (!look->needs_backfill) {
			*is_complete_r = true;
			return 0;
		}
		if (select_again(s, look, &stale) == 0 &&
		    backfill_folder(s, look->folder, look->selected.exists,
			budget, is_complete_r, &stale) == 0)
			return 0;
		if (stale.kind != ERR_STALE)
			break;
		if (reload_folder(s, look->folder->id, &look->folder,
			err) == -1 ||
		    pass_look(s, look->folder->id, look, err) == -1)
			return -1;
	}
	return pass_gave_up(s, i, &stale, err);
}

/* --- the pass ------------------------------------------------------------ */

static int
sync_sync_pass(struct session *s, unsigned scope, struct err *err)
{
	struct backfill_budget budget = { .messages = BACKFILL_MESSAGES };

	if (session_load(s, 1u << ACCOUNT_LIVE, err) == -1)
		return -1;
	session_db_rest(s);
	if (sync_connect(s, err) == -1)
		return -1;
	if (((scope & SCOPE_LIST) || s->n_folders == 0) &&
	    !s->sync->has_listed && pass_list(s, scope, err) == -1)
		return -1;
	s->sync->has_listed = true;
	session_db_rest(s);
	budget.deadline_mono_msecs = clock_mono_msecs() + BACKFILL_MSECS;
	if (pass_folders(s, scope, &budget, err) == -1 ||
	    quarantine_retry(s, &budget, err) == -1)
		return -1;
	/* Good-bye first: PostgreSQL is quicker than a mail server. */
	session_disconnect(s);
	if (session_db(s, err) == -1)
		return -1;
	return store_account_synced(
	    s->db.store, &s->fence, s->sync->totals.last_mail_secs, err);
}

int
sync_pass(struct session *s, unsigned scope, struct err *err)
{
	struct err failure = ERR_INIT;
	bool goes_on = true;
	int rv = -1;

	quarantine_begin(s);
	while (rv == -1 && goes_on) {
		failure.kind = ERR_NONE;
		rv = sync_sync_pass(s, scope, &failure);
		goes_on = quarantine_goes_on(s, &failure);
	}
	if (rv == 0 && s->sync->no_list.kind != ERR_NONE) {
		failure = s->sync->no_list;
		rv = -1;
	}
	if (rv == -1)
		*err = failure;
	return rv;
}
