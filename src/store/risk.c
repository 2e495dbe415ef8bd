/*
 * risk.c - steps that killed a child, and when they have done so too often.
 *
 * Runs in: clerk (noting), hot, pool and job children (loading, clearing).
 * Blocks.
 *
 * The child says what it is about to do in its slot of shared memory; only
 * when it dies there does the clerk write it down.  So the normal case costs
 * the database nothing.
 */
#include "store/session.h"

int
store_risk_note(struct store *s, const struct uuid *account_id,
    const struct risk *risk, const char *how, unsigned limit, struct err *err)
{
	struct params p;

	if (risk->step == RISK_NONE)
		return 0;
	params_init(&p);
	param_uuid(&p, account_id);
	param_int8(&p, risk->folder_id);
	param_text(&p, risk_step_name(risk->step));
	param_int8(&p, risk->uid_from);
	param_int8(&p, risk->uid_to);
	param_text(&p, how);
	param_int4(&p, (int32_t)limit);
	/* Only for a folder that is there: the account may be gone since. */
	return session_run(s, "INSERT INTO quarantine AS q (account_id, "
	    "mailbox_id, step, uid_from, uid_to, attempts, reason, state) "
	    "SELECT $1, b.id, $3, $4, $5, 1, $6, "
	    "CASE WHEN 1 >= $7 THEN 'parked' ELSE 'noted' END "
	    "FROM mailbox b WHERE b.id = $2 AND b.account_id = $1 "
	    "AND b.deleted_at IS NULL "
	    "ON CONFLICT (mailbox_id, step, uid_from, uid_to) DO UPDATE SET "
	    "attempts = q.attempts + 1, reason = excluded.reason, "
	    "last_at = now(), state = CASE WHEN q.state = 'skipped' "
	    "THEN q.state WHEN q.attempts + 1 >= $7 THEN 'parked' "
	    "ELSE 'noted' END", &p, NULL, err);
}

int
store_risks_load(struct store *s, const struct uuid *account_id,
    struct arena *arena, struct risk **risks_r, size_t *n_r, struct err *err)
{
	struct params p;
	PGresult *res;
	int i;

	params_init(&p);
	param_uuid(&p, account_id);
	if (session_run(s, "SELECT mailbox_id, step, uid_from, uid_to, "
	    "attempts, state FROM quarantine WHERE account_id = $1 "
	    "ORDER BY id", &p, &res, err) == -1)
		return -1;
	*n_r = (size_t)PQntuples(res);
	*risks_r = ARENA_ARRAY(arena, struct risk, *n_r);
	for (i = 0; i < (int)*n_r; i++) {
		struct risk *risk = &(*risks_r)[i];

		risk->folder_id = result_int8(res, i, 0);
		if (risk_step_parse(PQgetvalue(res, i, 1), &risk->step) == -1)
			risk->step = RISK_NONE;
		risk->uid_from = (uint32_t)result_int8(res, i, 2);
		risk->uid_to = (uint32_t)result_int8(res, i, 3);
		risk->attempts = (unsigned)result_int8(res, i, 4);
		risk->is_skipped =
		    strcmp(PQgetvalue(res, i, 5), "skipped") == 0;
		risk->is_parked =
		    strcmp(PQgetvalue(res, i, 5), "parked") == 0;
	}
	PQclear(res);
	return 0;
}

int
store_risk_clear(struct store *s, const struct fence *fence,
    const struct risk *risk, struct err *err)
{
	struct params p;

	params_init(&p);
	param_uuid(&p, &fence->account_id);
	param_int8(&p, risk->folder_id);
	param_text(&p, risk_step_name(risk->step));
	param_int8(&p, risk->uid_from);
	param_int8(&p, risk->uid_to);
	return session_fenced(s, fence, "DELETE FROM quarantine "
	    "WHERE account_id = $1 AND mailbox_id = $2 AND step = $3 "
	    "AND uid_from = $4 AND uid_to = $5", &p, NULL, err);
}
