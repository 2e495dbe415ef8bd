/*
 * risk.c - the quarantine: what made trouble, how often, and when to try again.
 *
 * Runs in: clerk (a child has died), hot, pool and job children (a connection
 * has ended, a message is not delivered).  Blocks.
 *
 * The child says what it is about to do in its slot of shared memory; only
 * when it dies there, or loses its connection, is it written down.  So the
 * normal case costs the database nothing.
 */
#include "store/session.h"

#include "base/clock.h"

#define PAUSE_GROWS 6 /* minutes, hours, a day */
#define PAUSE_MAX_SECS 86400

/* --- when ------------------------------------------------------------------ */

static int64_t
pause_secs(unsigned times_parked, int64_t first)
{
	int64_t pause = first < PAUSE_MAX_SECS ? first : PAUSE_MAX_SECS;

	while (--times_parked > 0 && pause < PAUSE_MAX_SECS)
		pause *= PAUSE_GROWS;
	return pause < PAUSE_MAX_SECS ? pause : PAUSE_MAX_SECS;
}

/* What was read from it is left out; only when that does not help either is
 * the message itself left alone. */
static bool
can_go_around(const struct risk *r, unsigned times_parked)
{
	return (r->step == RISK_PARSE || r->step == RISK_STORE) &&
	    times_parked <= 2;
}

struct risk
risk_after_attempt(const struct risk *risk, const struct risk_rule *rule,
    int64_t now_secs)
{
	struct risk r = *risk;
	unsigned times = 1;

	r.attempts++;
	r.is_news = false;
	if (r.is_skipped)
		return r;
	if (r.attempts > rule->limit)
		times += r.attempts - rule->limit;
	r.is_news = !r.is_parked && r.attempts >= rule->limit;
	r.is_parked |= r.is_news;
	r.next_secs = now_secs;
	if (!r.is_parked)
		r.next_secs += rule->first_pause_secs;
	else if (!can_go_around(&r, times))
		r.next_secs += pause_secs(times, rule->pause_secs);
	return r;
}

/* --- rows ------------------------------------------------------------------ */

#define RISK_COLUMNS                                                       \
	"mailbox_id, step, uid_from, uid_to, attempts, state, "            \
	"coalesce(floor(extract(epoch FROM next_at))::bigint, 0)"

static void
risk_read(const PGresult *res, int row, struct risk *risk)
{
	const char *state = PQgetvalue(res, row, 5);

	risk->folder_id = result_int8(res, row, 0);
	if (risk_step_parse(PQgetvalue(res, row, 1), &risk->step) == -1)
		risk->step = RISK_NONE;
	risk->uid_from = (uint32_t)result_int8(res, row, 2);
	risk->uid_to = (uint32_t)result_int8(res, row, 3);
	risk->attempts = (unsigned)result_int8(res, row, 4);
	risk->is_skipped = strcmp(state, "skipped") == 0;
	risk->is_parked = strcmp(state, "parked") == 0;
	risk->next_secs = result_int8(res, row, 6);
}

static void
risk_params(struct params *p, const struct uuid *account_id,
    const struct risk *risk)
{
	params_init(p);
	param_uuid(p, account_id);
	param_int8(p, risk->folder_id);
	param_text(p, risk_step_name(risk->step));
	param_int8(p, risk->uid_from);
	param_int8(p, risk->uid_to);
}

/* No row: no attempt yet. */
static int
risk_load(struct store *s, const struct uuid *account_id, struct risk *risk,
    struct err *err)
{
	struct params p;
	PGresult *res;

	risk->attempts = 0;
	risk->is_skipped = risk->is_parked = risk->is_news = false;
	risk->next_secs = 0;
	risk_params(&p, account_id, risk);
	if (session_run(s, "SELECT " RISK_COLUMNS " FROM quarantine "
	    "WHERE account_id = $1 AND mailbox_id = $2 AND step = $3 "
	    "AND uid_from = $4 AND uid_to = $5", &p, &res, err) == -1)
		return -1;
	if (PQntuples(res) > 0)
		risk_read(res, 0, risk);
	PQclear(res);
	return 0;
}

int
store_risk_count(struct store *s, const struct uuid *account_id,
    struct risk *risk, const char *how, const struct risk_rule *rule,
    struct err *err)
{
	struct params p;

	if (risk->step == RISK_NONE)
		return 0;
	if (risk_load(s, account_id, risk, err) == -1)
		return -1;
	*risk = risk_after_attempt(risk, rule, clock_wall_secs());
	risk_params(&p, account_id, risk);
	param_int4(&p, (int32_t)risk->attempts);
	param_text(&p, risk->is_parked ? "parked" : "noted");
	param_text(&p, how);
	param_time(&p, risk->next_secs);
	return session_run(s, "SELECT quarantine_set($1, $2, $3, $4, $5, $6, "
	    "$7, $8, $9)", &p, NULL, err);
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
	if (session_run(s, "SELECT " RISK_COLUMNS " FROM quarantine "
	    "WHERE account_id = $1 ORDER BY id", &p, &res, err) == -1)
		return -1;
	*n_r = (size_t)PQntuples(res);
	*risks_r = ARENA_ARRAY(arena, struct risk, *n_r);
	for (i = 0; i < (int)*n_r; i++)
		risk_read(res, i, &(*risks_r)[i]);
	PQclear(res);
	return 0;
}

int
store_risk_clear(struct store *s, const struct fence *fence,
    const struct risk *risk, struct err *err)
{
	struct params p;

	risk_params(&p, &fence->account_id, risk);
	return session_fenced(s, fence,
	    "SELECT quarantine_clear($1, $2, $3, $4, $5)", &p, NULL, err);
}

int
store_risk_settle(struct store *s, const struct fence *fence,
    const struct risk *risk, struct err *err)
{
	struct params p;

	risk_params(&p, &fence->account_id, risk);
	return session_fenced(s, fence, "UPDATE quarantine SET next_at = NULL "
	    "WHERE account_id = $1 AND mailbox_id = $2 AND step = $3 "
	    "AND uid_from = $4 AND uid_to = $5", &p, NULL, err);
}

int
store_risks_wake(struct store *s, const struct uuid *account_id,
    struct err *err)
{
	struct params p;

	params_init(&p);
	param_uuid(&p, account_id);
	return session_run(s, "SELECT quarantine_wake($1)", &p, NULL, err);
}
