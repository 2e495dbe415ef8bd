/*
 * once.c - mailherd -1 ACCOUNT: one pass in the foreground, without a master.
 *
 * Runs in: a process of its own, under a debugger if need be.  Blocking.
 *
 * All budgets are granted, there is no lease, and the key file is read here;
 * the fencing token still holds, so that it does no harm beside a running
 * worker.
 */
#include "child/child.h"

#include "base/clock.h"
#include "child/hooks.h"
#include "child/limits.h"
#include "jobs/jobs.h"
#include "proc/vault.h"

#include <sysexits.h>

static int
once_on_want(void *arg, enum resource resource, const char *host, uint16_t port,
    uint32_t *id_r, struct err *err)
{
	(void)arg;
	(void)resource;
	(void)host;
	(void)port;
	(void)err;
	*id_r = 0;
	return 0;
}

static void
once_on_give_back(void *arg, uint32_t id)
{
	(void)arg;
	(void)id;
}

static int
once_on_may_go_on(void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	return 0;
}

static void
once_on_note(void *arg, const struct slot_note *note)
{
	(void)arg;
	limits_step(note->step);
}

static void
once_on_emit(void *arg, const struct msg_event *event)
{
	log_debug(arg, "event=%s mailbox_id=%lld count=%u %s",
	    event_name(event->event), (long long)event->mailbox_id,
	    event->count, event->name);
}

static void
once_on_activity(void *arg, const char *text)
{
	log_debug(arg, "%s", text);
}

static int
once_on_unseal(void *arg, const struct seal_bond *bond,
    const struct sealed *sealed, char *secret_r, size_t size, struct err *err)
{
	size_t n;

	(void)arg;
	return vault_open(bond, sealed, secret_r, size, &n, err);
}

static int
once_find_account(const struct job_env *env, const char *name,
    struct uuid *id_r, struct err *err)
{
	struct account_db db;
	int rv;

	if (job_db_open(env, &db, err) == -1)
		return -1;
	rv = store_account_find(db.store, name, id_r, err);
	account_db_rest(&db);
	return rv;
}

static int
once_run(const struct job_env *env, const char *name, struct err *err)
{
	struct sync_totals totals;
	struct uuid id;
	int64_t started = clock_mono_msecs();
	bool is_complete;

	memset(&totals, 0, sizeof(totals));
	if (once_find_account(env, name, &id, err) == -1 ||
	    bootstrap_account(
		env, &id, "mailherd -1", INT64_MAX, &is_complete, err) == -1 ||
	    refresh_account(env, &id, &totals, err) == -1)
		return -1;
	log_info(&env->log, "account=%s: pass finished folders=%u new=%u "
	    "updated=%u deleted=%u round_trips=%llu msecs=%lld", name,
	    totals.folders_polled, totals.created, totals.updated,
	    totals.deleted, (unsigned long long)totals.round_trips,
	    (long long)(clock_mono_msecs() - started));
	return 0;
}

static int
once_exit_code(const struct err *err)
{
	switch (err->kind) {
	case ERR_AUTH:
		return EX_NOPERM;
	case ERR_CONFIG:
		return EX_CONFIG;
	case ERR_PERMANENT:
		return EX_UNAVAILABLE;
	case ERR_GONE:
		return EX_NOUSER;
	default:
		return EX_TEMPFAIL;
	}
}

int
child_run_once(const struct conf *conf, const char *account)
{
	struct job_env env = {
		.conf = conf,
		.worker_id = "mailherd -1",
	};
	struct account_hooks hooks = {
	    .want = once_on_want,
	    .give_back = once_on_give_back,
	    .may_go_on = once_on_may_go_on,
	    .note = once_on_note,
	    .emit = once_on_emit,
	    .activity = once_on_activity,
	    .unseal = once_on_unseal,
	    .arg = &env.log,
	};
	struct err err = ERR_INIT;

	env.hooks = &hooks;
	log_init(&env.log, LOG_SYNC, "%s", "");
	limits_start();
	if (vault_load(conf->secret_key_file, &err) == 0 &&
	    once_run(&env, account, &err) == 0)
		return EX_OK;
	log_error(&env.log, "%s: %s", err_kind_name(err.kind), err.text);
	return once_exit_code(&err);
}
