/*
 * bootstrap.c - sync_bootstrap_account: a new account becomes live.
 *
 * Runs in: job children.  Blocking.
 *
 * Owns the account by the fencing token, as a worker would, so that two runs
 * of the same job cannot both write.  A mailbox too large for one timeout, or
 * one that others wait behind, goes on in another turn: the cursors remember
 * how far it is (R-JOB-8).
 */
#include "jobs/jobs.h"

#include "base/clock.h"

/* Stops to load this long before the timeout: enough for the last batch. */
#define MARGIN_MSECS 60000

#define NOT_YET ((1u << ACCOUNT_NEW) | (1u << ACCOUNT_BOOTSTRAPPING))

/* *account_r NULL: it is past that already, or not to be synced at all. */
static int
bootstrap_take_over(const struct job_env *env, const struct uuid *id,
    const char *owner, struct arena *arena, struct account **account_r,
    struct err *err)
{
	struct account_db db;
	struct account *account;
	bool is_changed = false;
	int rv;

	*account_r = NULL;
	if (job_db_open(env, &db, err) == -1)
		return -1;
	rv = store_account_load(db.store, id, arena, &account, err);
	if (rv == 0 && ((1u << account->state) & NOT_YET)) {
		if (account->state == ACCOUNT_NEW)
			rv = store_account_set_state(db.store, id,
			    1u << ACCOUNT_NEW, ACCOUNT_BOOTSTRAPPING, "",
			    &is_changed, err);
		if (rv == 0)
			rv = store_account_take_over(db.store, id, owner,
			    arena, account_r, err);
	}
	account_db_rest(&db);
	if (rv == 0 && is_changed)
		account_tell_state(
		    env->hooks, account, ACCOUNT_BOOTSTRAPPING, "");
	return rv;
}

static int
become_live(const struct job_env *env, const struct account *account,
    const struct fence *fence, struct err *err)
{
	struct account_db db;
	bool is_changed = false;
	int rv;

	if (job_db_open(env, &db, err) == -1)
		return -1;
	rv = store_account_live(db.store, fence, &is_changed, err);
	account_db_rest(&db);
	if (rv == 0 && is_changed) {
		log_info(&env->log, "account=%s: live", account->email);
		account_tell_state(env->hooks, account, ACCOUNT_LIVE, "");
	}
	return rv;
}

static void
record_failure(const struct job_env *env, struct session *s,
    struct err *failure)
{
	struct err err = ERR_INIT;
	bool is_condemned;
	int64_t retry_secs;

	if (account_record_failure(
		s, failure, &is_condemned, &retry_secs, &err) == -1) {
		log_warn(&env->log, "failure not recorded: %s", err.text);
		return;
	}
	if (is_condemned) /* new credentials start a new job */
		failure->kind = ERR_PERMANENT;
	else if (retry_secs > failure->retry_after_secs)
		failure->retry_after_secs = (uint32_t)retry_secs;
}

int
bootstrap_account(const struct job_env *env, const struct uuid *account_id,
    const char *owner, int64_t deadline_mono_msecs, bool *is_complete_r,
    struct err *err)
{
	struct arena *arena = arena_new("bootstrap");
	struct account *account;
	struct session *s;
	struct fence fence;
	int rv;

	*is_complete_r = true;
	rv = bootstrap_take_over(env, account_id, owner, arena, &account, err);
	if (rv == -1 || account == NULL) {
		arena_free(&arena);
		return rv;
	}
	fence_init(&fence, account_id, account->epoch, owner);
	s = sync_open(env->conf, env->hooks, &fence);
	rv = sync_bootstrap(s, deadline_mono_msecs, is_complete_r, err);
	if (rv == -1)
		record_failure(env, s, err);
	sync_close(&s);
	if (rv == 0 && *is_complete_r)
		rv = become_live(env, account, &fence, err);
	arena_free(&arena);
	return rv;
}

int
bootstrap_run(struct job_run *run, struct err *err)
{
	int64_t now = clock_mono_msecs();
	int64_t margin = (run->deadline_mono_msecs - now) / 4;
	char owner[FENCE_OWNER_SIZE], id[UUID_TEXT_SIZE];
	bool is_complete;

	if (margin > MARGIN_MSECS)
		margin = MARGIN_MSECS;
	/* Two attempts of one job are two owners. */
	snprintf(owner, sizeof(owner), "job:%s:%08x",
	    uuid_format(&run->job->id, id), arc4random());
	if (bootstrap_account(run->env, &run->job->account_id, owner,
		run->deadline_mono_msecs - margin, &is_complete, err) == -1)
		return -1;
	run->is_yielded = !is_complete;
	return 0;
}

/* No more attempts: the application has to know, or the account would be
 * bootstrapping for ever. */
void
bootstrap_on_dead(struct job_run *run, const struct err *failure)
{
	const struct job_env *env = run->env;
	struct arena *arena = arena_new("dead bootstrap");
	struct account *account;
	struct err err = ERR_INIT;
	struct account_db db;
	bool is_changed = false;

	if (job_db_open(env, &db, &err) == 0) {
		if (store_account_load(db.store, &run->job->account_id, arena,
			&account, &err) == 0 &&
		    store_account_set_state(db.store, &account->id, NOT_YET,
			ACCOUNT_ERROR, failure->text, &is_changed,
			&err) == 0 && is_changed)
			account_tell_state(
			    env->hooks, account, ACCOUNT_ERROR, failure->text);
		account_db_rest(&db);
	}
	arena_free(&arena);
}
