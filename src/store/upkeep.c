/*
 * upkeep.c - the clerk's regular work: live accounts, search, removal.
 *
 * Runs in: clerk.  Blocks, for seconds at most a call.
 */
#include "store/session.h"

#include "base/clock.h"

/* Partitions of message_fts; see etc/schema/001_base.sql. */
#define FTS_PARTITIONS 16
#define MERGE_MSECS 2000
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

/* Partition after partition until the time is up; the next call goes on
 * where this one stopped. */
int
store_search_merge(struct store *s, struct err *err)
{
	int64_t deadline = clock_mono_msecs() + MERGE_MSECS;
	char name[64];
	struct params p;
	unsigned i;

	for (i = 0; i < FTS_PARTITIONS; i++) {
		snprintf(name, sizeof(name), "message_fts_%u_tsv_idx",
		    s->next_merge);
		s->next_merge = (s->next_merge + 1) % FTS_PARTITIONS;
		params_init(&p);
		param_text(&p, name);
		if (session_run(s,
		    "SELECT gin_clean_pending_list($1::text::regclass)", &p,
		    NULL, err) == -1)
			return -1;
		if (clock_mono_msecs() >= deadline)
			break;
	}
	return 0;
}

int
store_purge(struct store *s, size_t limit, bool *more_r, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_int4(&p, (int32_t)limit);
	if (session_run(s, "SELECT purge($1)", &p, &res, err) == -1) {
		/* Somebody is writing; another time. */
		*more_r = false;
		return strcmp(s->sqlstate, LOCK_NOT_AVAILABLE) == 0 ? 0 : -1;
	}
	*more_r = result_bool(res, 0, 0);
	PQclear(res);
	return 0;
}
