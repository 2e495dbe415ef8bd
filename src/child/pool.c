/*
 * pool.c - transient polls, one at a time, of whatever account is due.
 *
 * Runs in: pool children.  Blocking, a straight line.
 *
 * Nothing is kept from one poll to the next but the process itself and, where
 * the budget allows it, its session with PostgreSQL.
 */
#include "child/child.h"

#include "base/clock.h"
#include "child/hooks.h"
#include "child/limits.h"

#include <malloc.h>
#include <unistd.h>

struct pool {
	struct runtime rt;
	struct child_hooks hooks;
	struct kept_db kept;
};

/* Half of the sessions stay for those who open one now and then. */
static bool
may_keep_sessions(void)
{
	return child_conf()->pool_max <= child_conf()->db_conn_cap / 2;
}

/* Returns when the child is good for another account. */
static void
poll_account(struct pool *pool, const struct msg_poll_start *task)
{
	struct err err = ERR_INIT;
	int64_t started = clock_mono_msecs();
	struct session *s;
	struct fence fence;
	enum child_exit code;
	int rv;

	runtime_use_slot(&pool->rt, task->slot);
	snprintf(pool->hooks.email, sizeof(pool->hooks.email), "%s",
	    task->email);
	fence_init(&fence, &task->account_id, task->epoch, task->owner);
	s = sync_open(child_conf(), &pool->hooks.hooks, &fence);
	rv = sync_pass(s, task->scope, &err);
	code = rv == 0 ? EXIT_DONE : runtime_exit_code(&pool->rt, &err);
	child_report_pass(&pool->rt, s, &task->account_id, task->epoch,
	    rv == 0 ? NULL : &err, started);
	sync_close(&s);
	if (code == EXIT_FENCED || code == EXIT_LEASE_LOST)
		_exit(code);
	runtime_use_slot(&pool->rt, SLOT_NONE);
	pool->hooks.email[0] = '\0';
	malloc_trim(0);
}

void
pool_main(const struct child_start *start)
{
	struct pool pool;
	struct frame frame;

	memset(&pool, 0, sizeof(pool));
	runtime_init(&pool.rt, start);
	child_hooks_init(&pool.hooks, &pool.rt, KIND_POOL);
	if (may_keep_sessions())
		pool.hooks.hooks.kept = &pool.kept;
	limits_start();
	for (;;) {
		if (pool.rt.is_stopping)
			_exit(EXIT_DONE);
		runtime_activity(&pool.rt, "waiting");
		proc_set_title("pool waiting");
		if (runtime_next(&pool.rt, &frame, -1) != 1)
			continue;
		switch (frame.header.type) {
		case MSG_STOP:
			_exit(EXIT_DONE);
		case MSG_POLL_START:
			poll_account(&pool, &frame.payload.poll_start);
			break;
		default:
			log_warn(&pool.rt.log, "not for a pool child: %s",
			    msg_type_name(frame.header.type));
		}
	}
}
