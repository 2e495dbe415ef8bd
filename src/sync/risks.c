/*
 * risks.c - what is in quarantine, while an account is worked on.
 *
 * Runs in: whoever syncs.
 *
 * A death is counted by the clerk from the step note (proc/slots.h), what ends
 * a connection or is refused by whoever saw it.  A row means: left out of
 * ordinary work, which so always gets further, and tried alone after it
 * (quarantine.c).  The exception is a range of messages that PostgreSQL
 * refused together: each of them is stored alone, until the row of one names
 * the culprit.
 */
#include "sync/risks.h"

#include "base/clock.h"
#include "sync/events.h"

static bool
is_single(const struct risk *r)
{
	return r->step != RISK_FOLDER && r->uid_from == r->uid_to;
}

bool
risk_is_due(const struct risk *r, int64_t now_secs)
{
	return !r->is_skipped && r->step != RISK_NONE && r->next_secs != 0 &&
	    r->next_secs <= now_secs &&
	    (r->step == RISK_FOLDER || is_single(r));
}

bool
risks_has_folder(const struct session *s, int64_t folder_id)
{
	size_t i;

	for (i = 0; i < s->n_risks; i++)
		if (s->risks[i].folder_id == folder_id &&
		    s->risks[i].step == RISK_FOLDER)
			return true;
	return false;
}

bool
risks_has_message(const struct session *s, int64_t folder_id, uint32_t uid)
{
	size_t i;

	for (i = 0; i < s->n_risks; i++)
		if (s->risks[i].folder_id == folder_id &&
		    is_single(&s->risks[i]) && s->risks[i].uid_from == uid)
			return true;
	return false;
}

bool
risks_single(const struct session *s, int64_t folder_id, uint32_t uid)
{
	size_t i;

	for (i = 0; i < s->n_risks; i++) {
		const struct risk *r = &s->risks[i];

		if (r->folder_id == folder_id && r->step != RISK_FOLDER &&
		    r->uid_from <= uid && uid <= r->uid_to)
			return true;
	}
	return false;
}

const char *
risks_unparsed(const struct session *s, int64_t folder_id, uint32_t uid)
{
	size_t i;

	for (i = 0; i < s->n_risks; i++) {
		const struct risk *r = &s->risks[i];

		if (r->folder_id == folder_id && is_single(r) &&
		    r->uid_from == uid && r->is_parked &&
		    r->step != RISK_FETCH)
			return "quarantined: reading it ended the process";
	}
	return NULL;
}

/* --- counting ------------------------------------------------------------- */

static bool
is_same_step(const struct risk *a, const struct risk *b)
{
	return a->folder_id == b->folder_id && a->step == b->step &&
	    a->uid_from == b->uid_from && a->uid_to == b->uid_to;
}

/* What was just written counts for the rest of this session, too. */
static void
risks_remember(struct session *s, const struct risk *risk)
{
	struct risk *more;
	size_t i;

	for (i = 0; i < s->n_risks; i++)
		if (is_same_step(&s->risks[i], risk)) {
			s->risks[i] = *risk;
			return;
		}
	more = ARENA_ARRAY(s->facts, struct risk, s->n_risks + 1);
	if (s->n_risks > 0)
		memcpy(more, s->risks, s->n_risks * sizeof(*more));
	more[s->n_risks++] = *risk;
	s->risks = more;
}

static int
risks_count_by(struct session *s, struct risk *risk, const char *how,
    const struct risk_rule *rule, struct err *err)
{
	if (session_db(s, err) == -1 ||
	    store_risk_count(
		s->db.store, &s->fence.account_id, risk, how, rule, err) == -1)
		return -1;
	risks_remember(s, risk);
	if (risk->is_news)
		log_warn(&s->log, "folder_id=%lld uid=%u: quarantined, next "
		    "try in %lld s: %s", (long long)risk->folder_id,
		    risk->uid_from, (long long)(risk->next_secs -
			clock_wall_secs()), how);
	else
		log_info(&s->log, "folder_id=%lld uid=%u: %s, tried alone: "
		    "%s", (long long)risk->folder_id, risk->uid_from,
		    risk->is_parked ? "in quarantine" : "noted", how);
	if (risk->is_news || risk->attempts == 1)
		events_quarantine(s, risk, how);
	return 0;
}

int
risks_count(struct session *s, struct risk *risk, const char *how,
    bool is_proved, struct err *err)
{
	const struct risk_rule rule = {
		.limit = is_proved ? (unsigned)s->conf->risk_attempts :
		    UINT32_MAX,
		.pause_secs = s->conf->poll_warm,
	};

	return risks_count_by(s, risk, how, &rule, err);
}

/* It may have been for a moment only: the next try takes its time.  Only a
 * server that delivers another one has refused this one. */
int
risks_not_delivered(struct session *s, int64_t folder_id, uint32_t uid,
    const char *how, struct err *err)
{
	bool is_proved = s->sync->trial.step != RISK_NONE && s->sync->has_proof;
	const struct risk_rule rule = {
		.limit = is_proved ? (unsigned)s->conf->risk_attempts :
		    UINT32_MAX,
		.first_pause_secs = s->conf->poll_warm,
		.pause_secs = s->conf->poll_warm,
	};
	struct risk risk = {
		.folder_id = folder_id,
		.step = RISK_FETCH,
		.uid_from = uid,
		.uid_to = uid,
	};

	s->sync->has_lost_trial |=
	    s->sync->trial.step != RISK_NONE && !is_proved;
	return risks_count_by(s, &risk, how, &rule, err);
}

int
risks_refused_folder(struct session *s, struct risk *risk, const char *how,
    struct err *err)
{
	const struct risk_rule rule = {
		.limit = 1,
		.pause_secs = s->conf->poll_warm,
	};

	return risks_count_by(s, risk, how, &rule, err);
}

int
risks_clear_ranges(struct session *s, int64_t folder_id, uint32_t from,
    uint32_t to, struct err *err)
{
	size_t i;

	for (i = 0; i < s->n_risks; i++) {
		const struct risk *r = &s->risks[i];

		if (r->folder_id != folder_id || r->step == RISK_FOLDER ||
		    is_single(r) || r->is_skipped || r->uid_to > to ||
		    r->uid_to < from)
			continue;
		if (session_db(s, err) == -1 ||
		    store_risk_clear(s->db.store, &s->fence, r, err) == -1)
			return -1;
	}
	return 0;
}
