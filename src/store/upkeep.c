/*
 * upkeep.c - the clerk's regular work: live accounts, search, removal.
 *
 * Runs in: clerk.  Blocks, for seconds at most a call.
 */
#include "store/session.h"

#include "base/clock.h"

/* A transaction's: enough to meet common words many times. */
#define MERGE_ROWS 2000
#define LOCK_NOT_AVAILABLE "55P03"

int
store_live_ids(struct store *s, struct arena *arena, struct uuid **ids_r,
    size_t *n_r, struct err *err)
{
	PGresult *res;
	int i;

	if (session_run(s, "SELECT id FROM accounts WHERE state = 'live'",
	    NULL, &res, err) == -1)
		return -1;
	*n_r = (size_t)PQntuples(res);
	*ids_r = ARENA_ARRAY(arena, struct uuid, *n_r);
	for (i = 0; i < (int)*n_r; i++)
		result_uuid(res, i, 0, &(*ids_r)[i]);
	PQclear(res);
	return 0;
}

static int
merge_account(struct store *s, bool *has_more_r, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_int4(&p, MERGE_ROWS);
	if (session_run(s, "SELECT search_merge($1)", &p, &res, err) == -1)
		return -1;
	*has_more_r = !PQgetisnull(res, 0, 0);
	PQclear(res);
	return 0;
}

/* Account after account until none is due or the time is up. */
int
store_search_merge(struct store *s, int64_t msecs, struct err *err)
{
	int64_t deadline = clock_mono_msecs() + msecs;
	bool has_more = true;

	while (has_more && clock_mono_msecs() < deadline)
		if (merge_account(s, &has_more, err) == -1)
			return -1;
	return 0;
}

int
store_purge(struct store *s, size_t limit, int64_t keep_days, bool *more_r,
    struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_int4(&p, (int32_t)limit);
	param_int4(&p, (int32_t)keep_days);
	if (session_run(s, "SELECT purge($1, make_interval(days => $2))", &p,
		&res, err) == -1) {
		/* Somebody is writing; another time. */
		*more_r = false;
		return strcmp(s->sqlstate, LOCK_NOT_AVAILABLE) == 0 ? 0 : -1;
	}
	*more_r = result_bool(res, 0, 0);
	PQclear(res);
	return 0;
}
