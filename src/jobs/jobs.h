/*
 * jobs.h - the kinds of jobs: one row and one file each.
 *
 * Runs in: job children and mailherd -1.  Blocking.
 *
 * The row in PostgreSQL is the truth about a job; Redis only rings.  A job may
 * run twice (at least once is the promise), so each is written to do nothing
 * harmful the second time.
 */
#ifndef JOBS_JOBS_H
#define JOBS_JOBS_H

#include "sync/sync.h"

struct job_env {
	const struct conf *conf;
	const struct account_hooks *hooks;
	const char *worker_id; /* jobs.locked_by */
	struct log log;
};

/* One job under way. */
struct job_run {
	const struct job_env *env;
	const struct job *job;
	struct job_attempt attempt;
	int64_t deadline_mono_msecs; /* killed then; end well before */
	bool is_yielded; /* others go first; it goes on in another turn */
};

/* -1: failed; ERR_PERMANENT will not be tried again. */
typedef int (*job_function)(struct job_run *run, struct err *err);

struct job_kind {
	const char *name;
	job_function run;
	/* Attempts are used up: what is to be said to the application. */
	void (*on_dead)(struct job_run *run, const struct err *failure);
	/* Between attempts; 0: as backoff_first and backoff_max say. */
	int64_t pause_first_secs, pause_max_secs;
};
/* NULL: unknown. */
const struct job_kind *job_kind_find(const char *name);

struct job_outcome {
	struct uuid account_id; /* null when the job was not taken */
	char kind[64];
	struct err failure; /* kind ERR_NONE: done */
	bool is_dead;
	bool is_again; /* queued for another turn */
};
/*
 * Takes the job, or for a bulk job the one whose turn it is (on_taken), runs
 * it, writes how it ended.  ERR_GONE in the outcome: it was not there to be
 * taken (done by another, not due, or excluded).
 */
struct job_call {
	struct job_ring ring;
	int64_t timeout_secs;
	void (*on_taken)(void *arg, const struct job *job);
	void *arg;
};
void job_perform(const struct job_env *env, const struct job_call *call,
    struct job_outcome *outcome_r);

/* A PostgreSQL session of the job's own. */
int job_db_open(
    const struct job_env *env, struct account_db *db_r, struct err *err);

/* --- the jobs ------------------------------------------------------------ */

int bootstrap_run(struct job_run *run, struct err *err);
void bootstrap_on_dead(struct job_run *run, const struct err *failure);
int refresh_run(struct job_run *run, struct err *err);

/* The same without a job, for mailherd -1. */
int bootstrap_account(const struct job_env *env, const struct uuid *account_id,
    const char *owner, int64_t deadline_mono_msecs, bool *is_complete_r,
    struct err *err);
int refresh_account(const struct job_env *env, const struct uuid *account_id,
    struct sync_totals *totals_r, struct err *err);

#endif
