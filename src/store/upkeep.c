/*
 * upkeep.c - the clerk's regular work: live accounts, search, removal.
 *
 * Runs in: clerk.  Blocks, for seconds at most a call.
 */
#include "store/session.h"

#include "base/clock.h"

/* Of search_merged; see etc/schema/001_base.sql. */
#define PARTITIONS 16
/* A transaction's: enough to meet common words many times. */
#define MERGE_ROWS 4000
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
merge_rows(struct store *s, int64_t *moved_r, struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_int4(&p, MERGE_ROWS);
	if (session_run(s, "SELECT search_merge($1)", &p, &res, err) == -1)
		return -1;
	*moved_r = result_int8(res, 0, 0);
	PQclear(res);
	return 0;
}

static int
clean_partition(struct store *s, unsigned number, struct err *err)
{
	char name[64];
	struct params p;

	snprintf(name, sizeof(name), "search_merged_%u_tsv_idx", number);
	params_init(&p);
	param_text(&p, name);
	return session_run(s,
	    "SELECT gin_clean_pending_list($1::text::regclass)", &p, NULL,
	    err);
}

/* Partition after partition until the time is up; the next call goes on
 * where this one stopped. */
int
store_search_merge(struct store *s, int64_t msecs, struct err *err)
{
	int64_t deadline = clock_mono_msecs() + msecs, moved;
	unsigned i;

	do {
		if (merge_rows(s, &moved, err) == -1)
			return -1;
	} while (moved == MERGE_ROWS && clock_mono_msecs() < deadline);
	for (i = 0; i < PARTITIONS; i++) {
		if (clean_partition(s, s->next_merge, err) == -1)
			return -1;
		s->next_merge = (s->next_merge + 1) % PARTITIONS;
		if (clock_mono_msecs() >= deadline)
			break;
	}
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
