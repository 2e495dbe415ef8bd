/*
 * refresh.c - refresh_account_job: all folders now (R-JOB-7).
 *
 * Runs in: job children.  Blocking.
 *
 * A live account has an owner who goes on with it meanwhile: the job writes
 * under the owner's token and does not raise it.  Two at work on one folder
 * are told by the folder's generation (ERR_STALE) and plan again; when the
 * owner changes, the job starts over under the new token.
 */
#include "jobs/jobs.h"

#define OWNERS 3 /* changes of owner that one job survives */

static int
refresh_find_fence(const struct job_env *env, const struct uuid *account_id,
    struct fence *fence_r, bool *is_live_r, struct err *err)
{
	struct arena *arena = arena_new("refresh");
	struct account *account;
	struct account_db db;
	int rv;

	if (job_db_open(env, &db, err) == -1) {
		arena_free(&arena);
		return -1;
	}
	rv = store_account_load(db.store, account_id, arena, &account, err);
	/* Whoever asks for it wants all to be tried. */
	if (rv == 0)
		rv = store_risks_wake(db.store, account_id, err);
	if (rv == 0) {
		fence_init(fence_r, account_id, account->epoch,
		    account->owner);
		*is_live_r = account->state == ACCOUNT_LIVE;
	}
	account_db_rest(&db);
	arena_free(&arena);
	return rv;
}

static int
pass_once(const struct job_env *env, const struct uuid *account_id,
    struct sync_totals *totals_r, struct err *err)
{
	struct session *s;
	struct err ignored = ERR_INIT;
	struct fence fence;
	bool is_live = false, is_condemned;
	int64_t retry_secs;
	int rv;

	if (refresh_find_fence(env, account_id, &fence, &is_live, err) == -1)
		return -1;
	if (!is_live)
		return err_set(err, ERR_PERMANENT, "the account is not live");
	s = sync_open(env->conf, env->hooks, &fence);
	rv = sync_pass(s, SCOPE_ALL, err);
	if (rv == -1 && err->kind != ERR_FENCED &&
	    account_record_failure(
		s, err, &is_condemned, &retry_secs, &ignored) == 0) {
		if (is_condemned)
			err->kind = ERR_PERMANENT;
		else if (retry_secs > err->retry_after_secs)
			err->retry_after_secs = (uint32_t)retry_secs;
	}
	sync_totals_take(s, totals_r);
	sync_close(&s);
	return rv;
}

int
refresh_account(const struct job_env *env, const struct uuid *account_id,
    struct sync_totals *totals_r, struct err *err)
{
	int i, rv = -1;

	for (i = 0; i < OWNERS; i++) {
		rv = pass_once(env, account_id, totals_r, err);
		if (rv == 0 || err->kind != ERR_FENCED)
			break;
		/* A lost lease says the same and is final. */
		if (env->hooks->may_go_on(env->hooks->arg, err) == -1)
			break;
	}
	return rv;
}

int
refresh_run(struct job_run *run, struct err *err)
{
	struct sync_totals totals;

	memset(&totals, 0, sizeof(totals));
	return refresh_account(run->env, &run->job->account_id, &totals, err);
}
