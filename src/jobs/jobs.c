/*
 * jobs.c - the table of jobs, and how one is performed.
 *
 * Runs in: job children.  Blocking.
 *
 * Take, run, write down the end.  The lock on the row is short and the master
 * has it prolonged while the child lives: the job of a dead child or worker is
 * free again soon, however long its timeout.
 */
#include "jobs/jobs.h"

#include "base/clock.h"
#include "conf/retry.h"
#include "ipc/messages.h" /* JOB_LOCK_SECS */

#include <sys/random.h>

static const struct job_kind kinds[] = {
	{ .name = "sync_bootstrap_account", .run = bootstrap_run,
	    .on_dead = bootstrap_on_dead },
	{ .name = "refresh_account_job", .run = refresh_run,
	    .pause_first_secs = 10, .pause_max_secs = 300 },
};

const struct job_kind *
job_kind_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

int
job_db_open(const struct job_env *env, struct account_db *db, struct err *err)
{
	account_db_init(db, env->conf, env->hooks, "mailherd job");
	return account_db_open(db, err);
}

static int
jobs_take(const struct job_env *env, const struct job_ring *ring,
    struct arena *arena, struct job **job_r, struct err *err)
{
	struct account_db db;
	int rv;

	if (job_db_open(env, &db, err) == -1)
		return -1;
	/* The master holds it from here on (MSG_HOLD_JOBS). */
	rv = store_job_take(db.store, ring, env->worker_id, JOB_LOCK_SECS,
	    arena, job_r, err);
	account_db_rest(&db);
	return rv;
}

static int64_t
jobs_next_try(const struct job_env *env, const struct job_kind *kind,
    unsigned attempts, const struct err *failure)
{
	uint32_t random = UINT32_MAX / 2;
	unsigned n = attempts < 1 ? 1 : attempts;
	int64_t pause;

	if (failure->kind == ERR_STOPPED)
		return clock_wall_secs();
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	pause = kind->pause_first_secs == 0
		    ? retry_msecs(env->conf, RETRY_JOB, failure, n, random)
		    : retry_msecs_within(kind->pause_first_secs,
			  kind->pause_max_secs, failure, n, random);
	return clock_wall_secs() + pause / 1000;
}

static int
write_end(const struct job_run *run, const struct job_kind *kind,
    struct job_outcome *out, struct err *err)
{
	const struct job_env *env = run->env;
	const struct job_again again = {
	    .at_secs =
		jobs_next_try(env, kind, run->job->attempts, &out->failure),
	    .further_secs = jobs_next_try(env, kind, 1, &out->failure),
	};
	struct account_db db;
	int rv;

	account_db_init(&db, env->conf, env->hooks, "mailherd job");
	db.does_without_permit = out->failure.kind == ERR_STOPPED;
	if (account_db_open(&db, err) == -1)
		return -1;
	if (out->failure.kind != ERR_NONE)
		rv = store_job_failed(db.store, &run->attempt, &out->failure,
		    &again, &out->is_dead, err);
	else if (run->is_yielded)
		rv = store_job_yield(db.store, &run->attempt, err);
	else
		rv = store_job_done(db.store, &run->attempt, err);
	out->is_again = rv == 0 && run->is_yielded;
	account_db_rest(&db);
	return rv;
}

static void
tell_dead(const struct job_env *env, const struct job *job,
    const struct err *failure)
{
	struct msg_event ev;

	memset(&ev, 0, sizeof(ev));
	ev.event = EVENT_JOB_FAILED;
	ev.job_id = job->id;
	ev.account_id = job->account_id;
	snprintf(ev.name, sizeof(ev.name), "dead");
	snprintf(ev.reason, sizeof(ev.reason), "%s", failure->text);
	env->hooks->emit(env->hooks->arg, &ev);
}

static void
jobs_perform(const struct job_env *env, const struct job *job,
    int64_t timeout_secs, struct job_outcome *out)
{
	static const struct job_kind unknown = { .name = "unknown",
		.pause_first_secs = 60, .pause_max_secs = 3600 };
	const struct job_kind *kind = job_kind_find(job->kind);
	struct job_run run = {
		.env = env,
		.job = job,
		.attempt = { job->id, env->worker_id, job->attempts },
		.deadline_mono_msecs = clock_mono_msecs() +
		    timeout_secs * 1000,
	};
	struct err err = ERR_INIT;

	out->account_id = job->account_id;
	snprintf(out->kind, sizeof(out->kind), "%s", job->kind);
	if (kind == NULL) {
		kind = &unknown;
		err_set(&out->failure, ERR_PERMANENT, "this worker knows no "
		    "job of kind %s", job->kind);
	} else if (kind->run(&run, &out->failure) == 0)
		out->failure.kind = ERR_NONE;
	if (write_end(&run, kind, out, &err) == -1) {
		/* The sweep finds it when its lock has run out. */
		log_warn(&env->log, "end of job not written: %s", err.text);
		return;
	}
	if (!out->is_dead)
		return;
	if (kind->on_dead != NULL)
		kind->on_dead(&run, &out->failure);
	tell_dead(env, job, &out->failure);
}

void
job_perform(const struct job_env *env, const struct job_call *call,
    struct job_outcome *out)
{
	struct arena *arena = arena_new("job");
	struct job *job;

	memset(out, 0, sizeof(*out));
	if (jobs_take(env, &call->ring, arena, &job, &out->failure) == 0) {
		if (call->on_taken != NULL)
			call->on_taken(call->arg, job);
		jobs_perform(env, job, call->timeout_secs, out);
	}
	arena_free(&arena);
}
