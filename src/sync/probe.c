/*
 * probe.c - does the server do for another one what it does not do for this
 * one?
 *
 * Runs in: whoever syncs.  Blocks.
 */
#include "sync/probe.h"

#include "base/clock.h"
#include "sync/risks.h"

#define REFUSED_MAX 3 /* folders in a row: the server shows none now */

/* --- folders -------------------------------------------------------------- */

static bool
is_excepted(const struct probe_except *except, int64_t folder_id)
{
	size_t i;

	for (i = 0; i < except->n; i++)
		if (except->ids[i] == folder_id)
			return true;
	return false;
}

/* One that was well when it was looked at. */
static bool
can_probe(const struct session *s, const struct folder *f,
    const struct probe_except *except, bool has_messages)
{
	return f->is_selectable && f->missing_since_secs == 0 &&
	    f->cursor.uidvalidity != 0 &&
	    (f->cursor.messages > 0) == has_messages &&
	    f->parked_until_secs <= clock_wall_secs() &&
	    !is_excepted(except, f->id) && !risks_has_folder(s, f->id);
}

static int
probe_ignore(void *arg, const struct place *place)
{
	(void)arg;
	(void)place;
	return 0;
}

/* What a pass asks of a folder. */
static int
probe_ask(struct session *s, const struct folder *f, struct err *err)
{
	struct imap_selected selected;
	struct imap_status status;

	session_note(s, RISK_FOLDER, f->id, 0, 0);
	s->selected_id = 0;
	if (imap_status(s->imap, &f->wire, 1, &status, err) == -1 ||
	    imap_select(s->imap, f->wire, NULL, &selected, NULL,
		err) == -1)
		return -1;
	s->selected_id = f->id;
	if (s->sync->probed == SHOWS_NONE)
		s->sync->probed = OPENS_ONE;
	if (selected.exists == 0)
		return 0;
	if (imap_scan_seq(s->imap, selected.exists, selected.exists, ITEM_FLAGS,
		probe_ignore, NULL, err) == -1)
		return -1;
	s->sync->probed = SHOWS_ONE;
	return 0;
}

/* Until it is known of one folder.  *n_r: how many could be asked. */
static int
ask_until(struct session *s, const struct probe_except *except,
    bool has_messages, bool was_open, size_t *n_r, struct err *err)
{
	struct err no;
	size_t i;

	*n_r = 0;
	for (i = 0; i < s->n_folders; i++) {
		if (s->sync->probed >= (was_open ? SHOWS_ONE : OPENS_ONE) ||
		    s->sync->refused_probes >= REFUSED_MAX)
			break;
		if (!can_probe(s, &s->folders[i], except, has_messages))
			continue;
		++*n_r;
		no = (struct err)ERR_INIT;
		if (probe_ask(s, &s->folders[i], &no) == 0) {
			s->sync->refused_probes = 0;
		} else if (no.kind == ERR_SERVER) {
			s->sync->refused_probes++;
		} else {
			*err = no;
			return -1;
		}
	}
	return 0;
}

int
probe_folder(struct session *s, const struct probe_except *except,
    bool was_open, bool is_last, bool *is_proved_r, struct err *err)
{
	size_t n_full, n_empty;

	if (ask_until(s, except, true, was_open, &n_full, err) == -1)
		return -1;
	*is_proved_r = s->sync->probed >= (was_open ? SHOWS_ONE : OPENS_ONE);
	/* Empty ones prove that folders are opened, and no more. */
	if (!*is_proved_r && (!was_open || is_last) && n_full == 0) {
		if (ask_until(s, except, false, false, &n_empty, err) == -1)
			return -1;
		*is_proved_r = s->sync->probed >= OPENS_ONE &&
			       (!was_open || except->n == 1);
	}
	if (*is_proved_r)
		s->sync->losses = 0;
	session_note(s, RISK_NONE, 0, 0, 0);
	return 0;
}

static bool
is_only_folder(const struct session *s, int64_t folder_id)
{
	size_t i;

	for (i = 0; i < s->n_risks; i++)
		if (s->risks[i].step == RISK_FOLDER &&
		    s->risks[i].folder_id != folder_id)
			return false;
	return true;
}

int
probe_for_trial(struct session *s, struct err *err)
{
	const struct probe_except except = {&s->sync->trial.folder_id, 1};
	bool is_proved;

	if (probe_folder(s, &except, true, true, &is_proved, err) == -1)
		return -1;
	s->sync->has_proof =
	    is_proved && is_only_folder(s, s->sync->trial.folder_id);
	return 0;
}

bool
probe_proves_folder(const struct session *s, int64_t folder_id)
{
	if (s->sync->probed == SHOWS_ONE)
		return true;
	return s->sync->probed == OPENS_ONE &&
	       (s->selected_id != folder_id || s->sync->has_proof);
}

bool
probe_proves(const struct session *s)
{
	return s->sync->trial.step == RISK_FOLDER
		   ? probe_proves_folder(s, s->sync->trial.folder_id)
		   : s->sync->has_proof;
}

/* --- messages ------------------------------------------------------------- */

static int
count_bytes(void *arg, const char *p, size_t len)
{
	(void)p;
	*(size_t *)arg += len;
	return 0;
}

static int
no_more(void *arg, const struct place *place, bool has_body)
{
	(void)arg;
	(void)place;
	(void)has_body;
	return 0;
}

/* The oldest message of the folder that is stored and in no quarantine; 0. */
static int
probe_choose(
    struct session *s, int64_t folder_id, uint32_t *uid_r, struct err *err)
{
	struct place *places;
	size_t i, n;

	*uid_r = 0;
	if (session_db(s, err) == -1 ||
	    store_places(s->db.store, folder_id, 1, UINT32_MAX, s->n_risks + 1,
		s->pass, &places, &n, err) == -1)
		return -1;
	for (i = 0; i < n && *uid_r == 0; i++)
		if (!risks_has_message(s, folder_id, places[i].uid))
			*uid_r = places[i].uid;
	session_db_rest(s);
	return 0;
}

/* Nothing is stored to compare with: is there anything else to be tried? */
static bool
is_only_trial(const struct session *s)
{
	size_t i;

	for (i = 0; i < s->n_risks; i++)
		if (s->risks[i].step != RISK_FOLDER &&
		    !s->risks[i].is_skipped &&
		    (s->risks[i].folder_id != s->sync->trial.folder_id ||
			s->risks[i].uid_from != s->sync->trial.uid_from))
			return false;
	return true;
}

/*
 * The folder is selected.  Where none of its messages is known to be well, one
 * trial a pass is made without proof, and is proof for the next if it goes
 * well; it counts only where there is no other message to suspect the server
 * for.  *is_well_r false: the server delivers what was stored before no more
 * than the others, so that nothing can be said of them.
 */
int
probe_body(struct session *s, int64_t folder_id, bool *is_well_r,
    struct err *err)
{
	size_t n_bytes = 0;
	struct imap_sink sink = { .bytes = count_bytes, .done = no_more,
		.arg = &n_bytes, .is_header_only = true };
	struct err no = ERR_INIT;
	uint32_t uid;

	s->sync->has_proof = *is_well_r = true;
	if (s->sync->has_probed_body)
		return 0;
	if (probe_choose(s, folder_id, &uid, err) == -1)
		return -1;
	if (uid == 0) {
		s->sync->has_proof = is_only_trial(s);
		*is_well_r = s->sync->has_proof || !s->sync->has_lost_trial;
		return 0;
	}
	session_note(s, RISK_FETCH, folder_id, uid, uid);
	if (imap_fetch(s->imap, &uid, 1, 1, &sink, &no) == -1 &&
	    no.kind != ERR_SERVER) {
		s->sync->has_proof = false;
		*err = no;
		return -1;
	}
	*is_well_r = s->sync->has_proof = s->sync->has_probed_body =
	    n_bytes > 0;
	if (n_bytes > 0)
		s->sync->losses = 0;
	return 0;
}
