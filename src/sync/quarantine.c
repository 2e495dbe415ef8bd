/*
 * quarantine.c - trouble is put down to what causes it, and tried again.
 *
 * Runs in: whoever syncs.  Blocks.
 *
 * A connection that ends while one folder or message is asked for (BYE, cut,
 * silence, nonsense) may mean that object, or the whole server.  So nothing is
 * concluded in ordinary work: the object of the step note is noted, and the
 * work is begun anew without it, which gets further.  What is noted is tried
 * when all else is done, one at a time, each on a connection that has just
 * shown to do the same for another object of its kind (the probe).  If that one
 * ends, too, it is that object: it is parked, with the server's words, and
 * tried again later and later.  A server that is down fails the probe, or three
 * different objects in a row: then nothing is parked and the pass has failed.
 */
#include "sync/quarantine.h"

#include "base/clock.h"
#include "sync/events.h"
#include "sync/ingest.h"
#include "sync/pass.h"
#include "sync/probe.h"
#include "sync/risks.h"

#define LOSSES_MAX 3 /* connections in a row, with nothing done in between */
#define TRIES 4	     /* of one message whose folder changes meanwhile */

/* --- blame ---------------------------------------------------------------- */

static bool
is_loss(const struct session *s, const struct err *failure)
{
	if (s->imap == NULL)
		return false;
	switch (failure->kind) {
	case ERR_NETWORK:
	case ERR_TLS:
	case ERR_PROTOCOL:
	case ERR_DEADLINE:
		return true;
	case ERR_THROTTLED: /* a BYE that asks to come back later */
		return !failure->is_limit;
	default:
		return false;
	}
}

static bool
is_trial(const struct session *s)
{
	return s->sync->trial.step != RISK_NONE &&
	       s->sync->trial.folder_id == s->note.folder_id &&
	       (s->sync->trial.step == RISK_FOLDER) ==
		   (s->note.step == RISK_FOLDER) &&
	       s->sync->trial.uid_from == s->note.uid_from;
}

/* Under the step that is tried, whichever was being done. */
static bool
blame_step(struct session *s, const struct err *failure)
{
	struct risk risk = {
		.folder_id = s->note.folder_id,
		.step = s->note.step,
		.uid_from = s->note.uid_from,
		.uid_to = s->note.uid_to,
	};
	struct err err = ERR_INIT;
	bool is_proved = is_trial(s) && probe_proves(s);

	if (is_trial(s)) {
		risk.step = s->sync->trial.step;
		s->sync->has_lost_trial |=
		    !is_proved && risk.step != RISK_FOLDER;
	}
	session_disconnect(s);
	if (risks_count(s, &risk, failure->text, is_proved, &err) == 0)
		return true;
	log_warn(&s->log, "attempt not counted: %s", err.text);
	return false;
}

/* Known folders can be followed without a new LIST, and new ones be found
 * without the STATUS that would tell them from renamed ones.  A pass without a
 * LIST has failed for all that: its pauses grow (L217). */
static bool
blame_listing(struct session *s, const struct err *failure)
{
	if (s->sync->is_naming && !s->sync->skips_names)
		s->sync->skips_names = true;
	else if (s->sync->is_listing && s->n_folders > 0) {
		s->sync->has_listed = true;
		s->sync->no_list = *failure;
	} else
		return false;
	log_warn(&s->log, "%s; this pass goes on without it", failure->text);
	return true;
}

static bool
quarantine_blame(struct session *s, const struct err *failure)
{
	bool is_listing = s->sync->is_listing || s->sync->is_naming;

	if (!is_loss(s, failure) ||
	    (!is_listing && s->note.step == RISK_NONE))
		return false;
	s->sync->losses++;
	if (!(is_listing ? blame_listing(s, failure) :
		blame_step(s, failure)))
		return false;
	return failure->kind != ERR_THROTTLED && s->sync->losses < LOSSES_MAX;
}

bool
quarantine_goes_on(struct session *s, const struct err *failure)
{
	bool goes_on = quarantine_blame(s, failure);

	session_note(s, RISK_NONE, 0, 0, 0);
	s->sync->trial.step = RISK_NONE;
	s->sync->has_proof = s->sync->is_listing = s->sync->is_naming = false;
	session_disconnect(s);
	session_db_rest(s);
	s->sync->n_ahead = 0;
	arena_reset(s->pass);
	return goes_on;
}

void
quarantine_begin(struct session *s)
{
	s->sync->losses = 0;
	s->sync->has_listed = s->sync->skips_names = s->sync->has_lost_trial =
	    false;
	s->sync->no_list.kind = ERR_NONE;
}

/* --- a folder ------------------------------------------------------------- */

static int
try_clear(struct session *s, const struct risk *risk, struct err *err)
{
	if (session_db(s, err) == -1 ||
	    store_risk_clear(s->db.store, &s->fence, risk, err) == -1)
		return -1;
	log_info(&s->log, "folder_id=%lld uid=%u: out of quarantine",
	    (long long)risk->folder_id, risk->uid_from);
	events_quarantine(s, risk, "");
	return 0;
}

static int
try_fill(struct session *s, struct look *look, struct backfill_budget *budget,
    struct err *err)
{
	bool is_complete;

	if (pass_fetch(s, look, err) == -1 ||
	    pass_backfill(s, look, budget, &is_complete, err) == -1)
		return -1;
	s->sync->totals.has_more |= !is_complete;
	return 0;
}

/*
 * Some servers open a folder, show what is in it, and end the connection at
 * whatever is asked next.  So it is well only when its messages are known, or
 * when what fails is one of them.
 */
static int
try_whole_folder(struct session *s, struct folder *f,
    struct backfill_budget *budget, struct err *err)
{
	const struct risk trial = s->sync->trial;
	struct err no = ERR_INIT;
	struct imap_status status;
	struct look look;

	session_note(s, RISK_FOLDER, f->id, 0, 0);
	if (imap_status(s->imap, &f->wire, 1, &status, err) == -1 ||
	    pass_look(s, f->id, &look, err) == -1)
		return -1;
	s->sync->trial.step = RISK_NONE; /* of its messages, each has its own */
	if (try_fill(s, &look, budget, err) == 0)
		return try_clear(s, &trial, err);
	if (s->note.step == RISK_FOLDER)
		s->sync->trial = trial;
	else if (try_clear(s, &trial, &no) == -1)
		log_debug(&s->log, "not cleared: %s", no.text);
	return -1;
}

static int
try_folder(struct session *s, struct backfill_budget *budget,
    struct err *err)
{
	struct folder *f = session_folder(s, s->sync->trial.folder_id);
	struct err failure = ERR_INIT;
	bool is_proved;

	if (f == NULL || !f->is_selectable || f->missing_since_secs != 0)
		return 0;
	if (probe_for_trial(s, err) == -1)
		return -1;
	/* A parked folder is not looked at: its time has come. */
	f->parked_until_secs = 0;
	if (try_whole_folder(s, f, budget, &failure) == 0)
		return 0;
	if (!session_is_usable_after(s, &failure)) {
		*err = failure;
		return -1;
	}
	is_proved = probe_proves_folder(s, f->id);
	session_note(s, RISK_NONE, 0, 0, 0);
	f = session_folder(s, f->id);
	/* Refused, as others are: it stays as it is. */
	if (f == NULL || failure.kind == ERR_STALE ||
	    failure.kind == ERR_GONE || !is_proved)
		return 0;
	return pass_park(s, f, &failure, err);
}

/* --- a message ------------------------------------------------------------ */

struct trial_scan {
	struct place place; /* uid 0: it is gone */
	uint32_t uid;
};

static int
trial_on_place(void *arg, const struct place *p)
{
	struct trial_scan *scan = arg;

	if (p->uid != scan->uid)
		return 0;
	scan->place = *p;
	scan->place.flags.keywords = "";
	scan->place.message_id = NULL;
	return 0;
}

/* Selected, and with the UIDs that the row speaks of; *is_ready_r. */
static int
trial_select(struct session *s, struct folder *f, bool *is_ready_r,
    struct err *err)
{
	struct imap_selected selected;
	struct err no = ERR_INIT;

	*is_ready_r = true;
	if (s->selected_id == f->id)
		return 0;
	session_note(s, RISK_FOLDER, f->id, 0, 0);
	s->selected_id = 0;
	if (imap_select(s->imap, f->wire, NULL, &selected, NULL,
		&no) == -1) {
		*is_ready_r = false;
		*err = no;
		return session_is_usable_after(s, &no) ? 0 : -1;
	}
	s->selected_id = f->id;
	*is_ready_r = selected.uidvalidity == 0 ||
	    selected.uidvalidity == f->cursor.uidvalidity;
	if (!*is_ready_r)
		s->selected_id = 0; /* the next look sees to it */
	return 0;
}

static int
trial_fetch(struct session *s, struct folder *f, const struct place *place,
    struct err *err)
{
	struct ingest *in;
	int rv;

	if (ingest_start(&in, s, f, err) == -1)
		return -1;
	rv = ingest_messages(in, place, 1, NULL, NULL, err);
	if (ingest_finish(&in, rv == 0 ? err : NULL) == -1)
		rv = -1;
	return rv;
}

/* The ranges and other steps of a message that is well are done with, too. */
static int
trial_ends(struct session *s, const struct risk *risk, struct err *err)
{
	bool is_known;

	if (session_db(s, err) == -1 ||
	    store_known_uids(s->db.store, risk->folder_id, &risk->uid_from, 1,
		&is_known, err) == -1)
		return -1;
	if (!is_known)
		return 0; /* it was counted again */
	if (risk->is_parked && risk->step != RISK_FETCH) {
		log_info(&s->log, "folder_id=%lld uid=%u: stored unparsed",
		    (long long)risk->folder_id, risk->uid_from);
		return store_risk_settle(s->db.store, &s->fence, risk, err);
	}
	return try_clear(s, risk, err);
}

static int
try_message_once(struct session *s, struct folder *f, struct err *err)
{
	struct trial_scan scan = {.uid = s->sync->trial.uid_from};
	bool is_ready, is_well = true;

	if (trial_select(s, f, &is_ready, err) == -1)
		return -1;
	if (!is_ready)
		return 0;
	if (probe_body(s, f->id, &is_well, err) == -1)
		return -1;
	if (!is_well)
		return 0;
	session_note(s, RISK_FETCH, f->id, scan.uid, scan.uid);
	if (imap_scan_uids(s->imap, scan.uid, scan.uid,
		ITEM_FLAGS | ITEM_SIZE, trial_on_place, &scan, err) == -1)
		return -1;
	if (scan.place.uid == 0)
		return try_clear(s, &s->sync->trial, err); /* expunged */
	if (trial_fetch(s, f, &scan.place, err) == -1)
		return -1;
	return trial_ends(s, &s->sync->trial, err);
}

/* The row as it is now: it may just have been parked. */
static bool
trial_reload(struct session *s, const struct risk *was)
{
	size_t i;

	for (i = 0; i < s->n_risks; i++) {
		const struct risk *r = &s->risks[i];

		if (r->folder_id != was->folder_id || r->step != was->step ||
		    r->uid_from != was->uid_from || r->uid_to != was->uid_to)
			continue;
		s->sync->trial = *r;
		return risk_is_due(r, clock_wall_secs());
	}
	return false;
}

static int
try_message(struct session *s, struct err *err)
{
	const struct risk risk = s->sync->trial;
	struct err failure = ERR_INIT;
	struct folder *f;
	int i;

	for (i = 0; i < TRIES; i++) {
		f = session_folder(s, risk.folder_id);
		if (f == NULL || !f->is_selectable ||
		    f->missing_since_secs != 0 || f->cursor.uidvalidity == 0 ||
		    risks_has_folder(s, f->id))
			return 0;
		failure.kind = ERR_NONE;
		if (try_message_once(s, f, &failure) == 0)
			return 0;
		if (failure.kind != ERR_STALE)
			break;
		/* PostgreSQL refused it, or a sibling was at work. */
		if (session_reload(s, err) == -1)
			return -1;
		if (!trial_reload(s, &risk))
			return 0;
	}
	if (failure.kind == ERR_STALE)
		return 0;
	if (failure.kind == ERR_SERVER)
		return risks_not_delivered(s, risk.folder_id, risk.uid_from,
		    failure.text, err);
	*err = failure;
	return -1;
}

/* --- all ------------------------------------------------------------------ */

static int
try_one(struct session *s, const struct risk *risk,
    struct backfill_budget *budget, struct err *err)
{
	s->sync->trial = *risk;
	s->sync->has_proof = false;
	if (session_may_go_on(s, err) == -1)
		return -1;
	session_db_rest(s);
	if ((risk->step == RISK_FOLDER ? try_folder(s, budget, err) :
		try_message(s, err)) == -1)
		return -1;
	session_note(s, RISK_NONE, 0, 0, 0);
	s->sync->trial.step = RISK_NONE;
	return 0;
}

/* Folders first: most of what waits then is in them. */
int
quarantine_retry(struct session *s, struct backfill_budget *budget,
    struct err *err)
{
	const int64_t now = clock_wall_secs();
	struct risk *risks = s->risks; /* as they were loaded */
	size_t i, n = s->n_risks;
	int round;

	for (round = 0; round < 2; round++)
		for (i = 0; i < n; i++) {
			if ((risks[i].step == RISK_FOLDER) != (round == 0) ||
			    !risk_is_due(&risks[i], now))
				continue;
			session_activity(s, "trying what was put aside");
			if (try_one(s, &risks[i], budget, err) == -1)
				return -1;
		}
	return 0;
}
