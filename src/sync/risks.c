/*
 * risks.c - what killed a child before, and what to do about it.
 *
 * Runs in: whoever syncs.
 *
 * A death is counted by the clerk from the step note (proc/slots.h).  After
 * one death by a range, each of its messages is fetched alone, so that the
 * next death names the culprit; after `risk_attempts` deaths the row is parked
 * and the step is gone around: a message that cannot be parsed is stored
 * unparsed, one that cannot be fetched is left out.
 */
#include "sync/risks.h"

#include "sync/compare.h"

static bool
is_about(const struct risk *r, int64_t folder_id, uint32_t uid)
{
	return r->folder_id == folder_id && r->step != RISK_FOLDER &&
	    r->uid_from <= uid && uid <= r->uid_to;
}

static bool
is_given_up(const struct risk *r)
{
	return r->is_parked || r->is_skipped;
}

bool
risks_park_folder(const struct session *s, int64_t folder_id)
{
	size_t i;

	for (i = 0; i < s->n_risks; i++)
		if (s->risks[i].folder_id == folder_id &&
		    s->risks[i].step == RISK_FOLDER &&
		    is_given_up(&s->risks[i]))
			return true;
	return false;
}

bool
risks_leave_out(const struct session *s, int64_t folder_id, uint32_t uid)
{
	size_t i;

	for (i = 0; i < s->n_risks; i++) {
		const struct risk *r = &s->risks[i];

		/* A range only says "singly", it is never given up whole. */
		if (!is_about(r, folder_id, uid) || r->uid_from != r->uid_to)
			continue;
		if (r->is_skipped || (r->is_parked && r->step == RISK_FETCH))
			return true;
		/* Not even its bare bytes are taken. */
		if (r->is_parked && r->attempts >
		    (unsigned)s->conf->risk_attempts + 1)
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

		if (is_about(r, folder_id, uid) && r->uid_from == r->uid_to &&
		    r->is_parked && r->step != RISK_FETCH)
			return "quarantined: reading it ended the process";
	}
	return NULL;
}

bool
risks_single(const struct session *s, int64_t folder_id, uint32_t uid)
{
	size_t i;

	for (i = 0; i < s->n_risks; i++)
		if (is_about(&s->risks[i], folder_id, uid))
			return true;
	return false;
}

void
risks_retry(const struct session *s, int64_t folder_id, struct arena *arena,
    uint32_t **uids_r, size_t *n_r)
{
	size_t i, n = 0;

	*uids_r = ARENA_ARRAY(arena, uint32_t, s->n_risks);
	for (i = 0; i < s->n_risks; i++) {
		const struct risk *r = &s->risks[i];

		if (r->folder_id == folder_id && r->step == RISK_FETCH &&
		    r->uid_from == r->uid_to && !is_given_up(r))
			(*uids_r)[n++] = r->uid_from;
	}
	*n_r = uids_sort(*uids_r, n);
}

int
risks_not_delivered(struct session *s, int64_t folder_id, uint32_t uid,
    struct err *err)
{
	const struct risk risk = {
		.folder_id = folder_id,
		.step = RISK_FETCH,
		.uid_from = uid,
		.uid_to = uid,
	};

	log_warn(&s->log, "folder_id=%lld uid=%u: listed but not delivered; "
	    "tried again in a later pass", (long long)folder_id, uid);
	if (session_db(s, err) == -1)
		return -1;
	return store_risk_note(s->db, &s->fence.account_id, &risk,
	    "the server lists it but does not deliver it",
	    (unsigned)s->conf->risk_attempts, err);
}

int
risks_clear(struct session *s, int64_t folder_id, const uint32_t *uids,
    size_t n, struct err *err)
{
	size_t i;

	if (n == 0)
		return 0;
	for (i = 0; i < s->n_risks; i++) {
		const struct risk *r = &s->risks[i];

		/* Parked rows stay for the operator; a range is done with
		 * when its last message is. */
		if (r->folder_id != folder_id || r->step == RISK_FOLDER ||
		    is_given_up(r) || r->uid_to > uids[n - 1] ||
		    r->uid_to < uids[0])
			continue;
		if (r->uid_from == r->uid_to &&
		    !uids_have(uids, n, r->uid_from))
			continue;
		if (session_db(s, err) == -1 ||
		    store_risk_clear(s->db, &s->fence, r, err) == -1)
			return -1;
	}
	return 0;
}
