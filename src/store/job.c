/*
 * job.c - the jobs table: the truth about work; Redis only rings.
 *
 * Runs in: job children, clerk, mailherdctl.  Blocks.
 *
 * queued -> running -> done | queued (later) | dead.  A running job belongs to
 * its owner until lock_until; every later change names the owner, so that one
 * who outlived its lock changes nothing.
 */
#include "store/session.h"

#define UNIQUE_VIOLATION "23505"

static int
is_not_ours(struct err *err)
{
	return err_set(err, ERR_GONE, "the job is no longer ours");
}

int
store_job_take(struct store *s, const struct job_ring *ring,
    const char *owner, int64_t lock_secs, struct arena *arena,
    struct job **job_r, struct err *err)
{
	struct params p;
	struct job *job;
	PGresult *res;

	params_init(&p);
	param_uuid(&p, &ring->id);
	param_bool(&p, ring->is_bulk);
	param_text(&p, owner);
	param_int8(&p, lock_secs);
	/* jobs_one_running keeps a second of its kind and account out. */
	if (session_run(s, "SELECT id, account_id, kind, queue, payload, "
	    "attempts, max_attempts FROM job_take($1, $2, $3, "
	    "$4 * interval '1 second')", &p, &res, err) == -1)
		return strcmp(s->sqlstate, UNIQUE_VIOLATION) == 0 ?
		    err_set(err, ERR_GONE,
			"a job of this kind is running for the account") : -1;
	if (PQntuples(res) == 0) {
		PQclear(res);
		return err_set(err, ERR_GONE, "the job is not due");
	}
	job = ARENA_NEW(arena, struct job);
	result_uuid(res, 0, 0, &job->id);
	result_uuid(res, 0, 1, &job->account_id);
	job->kind = result_text(arena, res, 0, 2);
	if (job_queue_parse(PQgetvalue(res, 0, 3), &job->queue) == -1)
		job->queue = QUEUE_BULK;
	job->payload = result_text(arena, res, 0, 4);
	job->attempts = (unsigned)result_int8(res, 0, 5);
	job->max_attempts = (unsigned)result_int8(res, 0, 6);
	PQclear(res);
	*job_r = job;
	return 0;
}

int
store_jobs_hold(struct store *s, const struct uuid *ids, size_t n,
    const char *owner, int64_t lock_secs, struct err *err)
{
	struct buf list = BUF_INIT;
	char text[UUID_TEXT_SIZE];
	struct params p;
	PGresult *res;
	size_t i;
	int rv;

	for (i = 0; i < n; i++)
		buf_addf(&list, "%c%s", i == 0 ? '{' : ',',
		    uuid_format(&ids[i], text));
	buf_adds(&list, n == 0 ? "{}" : "}");
	params_init(&p);
	param_text(&p, buf_str(&list));
	param_text(&p, owner);
	param_int8(&p, lock_secs);
	rv = session_run(s, "UPDATE jobs SET lock_until = now() + "
	    "$3 * interval '1 second' WHERE id = ANY($1::text::uuid[]) "
	    "AND state = 'running' AND owner = $2 RETURNING id", &p, &res,
	    err);
	buf_release(&list);
	if (rv == 0)
		PQclear(res);
	return rv;
}

/* Of this attempt, and no other: a job may have been given to somebody else,
 * and even have come back to the same worker. */
static void
param_attempt(struct params *p, const struct job_attempt *attempt)
{
	param_uuid(p, &attempt->id);
	param_text(p, attempt->owner);
	param_int4(p, (int32_t)attempt->number);
}

/* One statement with the attempt as $1 to $3; no row: it is not ours. */
static int
run_as_attempt(struct store *s, const char *sql,
    const struct job_attempt *attempt, struct err *err)
{
	struct params p;
	PGresult *res;
	int n;

	params_init(&p);
	param_attempt(&p, attempt);
	if (session_run(s, sql, &p, &res, err) == -1)
		return -1;
	n = PQntuples(res);
	PQclear(res);
	return n == 1 ? 0 : is_not_ours(err);
}

#define IS_ATTEMPT \
	"id = $1 AND state = 'running' AND owner = $2 AND attempts = $3"

int
store_job_done(struct store *s, const struct job_attempt *attempt,
    struct err *err)
{
	return run_as_attempt(s, "UPDATE jobs SET state = 'done', "
	    "owner = NULL, lock_until = NULL, finished_at = now(), "
	    "last_error = '' WHERE " IS_ATTEMPT " RETURNING id", attempt,
	    err);
}

int
store_job_prove(struct store *s, const struct job_attempt *attempt,
    struct err *err)
{
	return run_as_attempt(s, "SELECT id FROM jobs WHERE " IS_ATTEMPT,
	    attempt, err);
}

int
store_job_yield(struct store *s, const struct job_attempt *attempt,
    struct err *err)
{
	return run_as_attempt(s, "SELECT 1 WHERE job_yield($1, $2, $3)",
	    attempt, err);
}

int
store_jobs_to_yield(struct store *s, const char *owner, int64_t slice_secs,
    struct arena *arena, struct uuid **ids_r, size_t *n_r)
{
	struct err failure = ERR_INIT;
	struct params p;
	PGresult *res;
	int i;

	params_init(&p);
	param_text(&p, owner);
	param_int8(&p, slice_secs);
	*n_r = 0;
	if (session_run(s, "SELECT * FROM jobs_to_yield($1, "
	    "$2 * interval '1 second')", &p, &res, &failure) == -1) {
		log_warn(&s->log, "jobs to yield: %s", failure.text);
		return -1;
	}
	*n_r = (size_t)PQntuples(res);
	*ids_r = ARENA_ARRAY(arena, struct uuid, *n_r);
	for (i = 0; i < (int)*n_r; i++)
		result_uuid(res, i, 0, &(*ids_r)[i]);
	PQclear(res);
	return 0;
}

static bool
is_hopeless(enum err_kind kind)
{
	return kind == ERR_PERMANENT || kind == ERR_GONE ||
	    kind == ERR_CONFIG;
}

/* Stopped with its worker: that was no attempt of its own. */
static int
take_back_attempt(struct store *s, struct job_attempt *attempt,
    struct err *err)
{
	if (run_as_attempt(s, "UPDATE jobs "
	    "SET attempts = greatest(attempts - 1, 0) WHERE " IS_ATTEMPT
	    " RETURNING id", attempt, err) == -1)
		return -1;
	if (attempt->number > 0)
		attempt->number--;
	return 0;
}

int
store_job_failed(struct store *s, const struct job_attempt *failed,
    const struct err *failure, const struct job_again *again, bool *dead_r,
    struct err *err)
{
	struct job_attempt attempt = *failed;
	struct params p;
	PGresult *res;

	if (failure->kind == ERR_STOPPED &&
	    take_back_attempt(s, &attempt, err) == -1)
		return -1;
	params_init(&p);
	param_attempt(&p, &attempt);
	param_text(&p, failure->text);
	param_bool(&p, is_hopeless(failure->kind));
	param_time(&p, again->at_secs);
	param_time(&p, again->further_secs);
	if (session_run(s, "SELECT job_failed($1, $2, $3, $4, $5, $6, $7)", &p,
	    &res, err) == -1)
		return -1;
	if (PQgetisnull(res, 0, 0)) {
		PQclear(res);
		return is_not_ours(err);
	}
	*dead_r = strcmp(PQgetvalue(res, 0, 0), "dead") == 0;
	PQclear(res);
	return 0;
}

int
store_job_add(struct store *s, enum job_queue queue, const char *kind,
    const struct uuid *account_id, const char *payload, struct uuid *id_r,
    struct err *err)
{
	struct params p;
	PGresult *res;

	params_init(&p);
	param_text(&p, job_queue_name(queue));
	param_text(&p, kind);
	param_uuid(&p, account_id);
	param_untyped(&p, payload != NULL ? payload : "{}");
	if (session_run(s, "SELECT job_add($1, $2, $3, $4::jsonb)", &p, &res,
	    err) == -1)
		return -1;
	result_uuid(res, 0, 0, id_r);
	PQclear(res);
	return 0;
}

int
store_bootstrap_orphans(struct store *s, size_t limit, struct arena *arena,
    struct orphan **orphans_r, size_t *n_r, struct err *err)
{
	struct params p;
	PGresult *res;
	size_t i;

	params_init(&p);
	param_int8(&p, (int64_t)limit);
	if (session_run(s, "SELECT a.id, d.last_error FROM accounts a "
	    "LEFT JOIN LATERAL (SELECT coalesce(j.last_error, '') "
	    "    AS last_error FROM jobs j WHERE j.account_id = a.id "
	    "    AND j.kind = 'sync_bootstrap_account' AND j.state = 'dead' "
	    "    ORDER BY j.finished_at DESC LIMIT 1) d ON true "
	    "WHERE a.state IN ('new', 'bootstrapping') "
	    "AND NOT EXISTS (SELECT FROM jobs j WHERE j.account_id = a.id "
	    "    AND j.kind = 'sync_bootstrap_account' "
	    "    AND j.state IN ('queued', 'running')) LIMIT $1", &p, &res,
	    err) == -1)
		return -1;
	*n_r = (size_t)PQntuples(res);
	*orphans_r = ARENA_ARRAY(arena, struct orphan, *n_r);
	for (i = 0; i < *n_r; i++) {
		result_uuid(res, (int)i, 0, &(*orphans_r)[i].account_id);
		(*orphans_r)[i].reason = PQgetisnull(res, (int)i, 1) ? NULL :
		    result_text(arena, res, (int)i, 1);
	}
	PQclear(res);
	return 0;
}

int
store_jobs_requeue(struct store *s, struct err *err)
{
	return session_run(s, "SELECT jobs_requeue()", NULL, NULL, err);
}

int
store_jobs_due(struct store *s, size_t limit, int64_t rung_secs,
    struct arena *arena, struct due_job **due_r, size_t *n_r,
    struct err *err)
{
	struct params p;
	PGresult *res;
	int i;

	params_init(&p);
	param_int8(&p, (int64_t)limit);
	param_int8(&p, rung_secs);
	/* Interactive first; those whose kind is running for the account
	 * already cannot be taken yet. */
	if (session_run(s, "UPDATE jobs j SET rung_at = now() FROM ("
	    "SELECT id FROM jobs q WHERE state = 'queued' "
	    "AND run_at <= now() AND (rung_at IS NULL "
	    "OR rung_at <= now() - $2 * interval '1 second') "
	    "AND NOT EXISTS (SELECT FROM jobs r WHERE r.state = 'running' "
	    "AND r.dedup_key = q.dedup_key) "
	    "ORDER BY queue DESC, served_msecs, run_at LIMIT $1 "
	    "FOR UPDATE SKIP LOCKED) d WHERE j.id = d.id "
	    "RETURNING j.id, j.queue", &p, &res, err) == -1)
		return -1;
	*n_r = (size_t)PQntuples(res);
	*due_r = ARENA_ARRAY(arena, struct due_job, *n_r);
	for (i = 0; i < (int)*n_r; i++) {
		result_uuid(res, i, 0, &(*due_r)[i].id);
		if (job_queue_parse(PQgetvalue(res, i, 1),
		    &(*due_r)[i].queue) == -1)
			(*due_r)[i].queue = QUEUE_BULK;
	}
	PQclear(res);
	return 0;
}
