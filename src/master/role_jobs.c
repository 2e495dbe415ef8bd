/*
 * role_jobs.c - a jobs worker: takes jobs from two queues, owns nothing.
 *
 * Runs in: master of the jobs role.  Never blocks.
 */
#include "master/role.h"

#include "lease/heartbeat.h"
#include "lease/hints.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/event_hub.h"
#include "master/job_dispatch.h"
#include "master/metrics.h"
#include "master/pool.h"
#include "master/reply.h"
#include "redis/redis.h"

#include <string.h>

/* The clerk's merges and purges may take so long. */
#define UPKEEP_MSECS 900000

/* --- beginning and end -------------------------------------------------- */

static void
jobs_on_channel(void *arg, const char *text, size_t len)
{
	event_hub_hear(arg, text, len);
}

static void
jobs_start(struct master *m)
{
	static const char *const channels[] = {
		"events:account.state_changed",
	};

	m->upkeeper = clerk_new(m, "upkeep", UPKEEP_MSECS);
	m->heartbeat = heartbeat_new(&(struct heartbeat_params){
	    .base = m->base, .redis = m->redis, .conf = m->conf,
	    .worker_id = m->worker_id, .role = m->role->name,
	    .describe = metrics_heartbeat, .arg = m });
	m->jobs = job_dispatch_new(m);
	redis_subscribe(m->redis_events, channels,
	    sizeof(channels) / sizeof(channels[0]), jobs_on_channel, m);
}

static void
jobs_stop(struct master *m)
{
	heartbeat_end(m->heartbeat);
	job_dispatch_stop(m->jobs);
	clerk_stop(m->upkeeper);
}

static bool
jobs_is_quiet(const struct master *m)
{
	(void)m; /* its children are all there is to wait for */
	return true;
}

static void
jobs_end(struct master *m)
{
	job_dispatch_free(&m->jobs);
	heartbeat_free(&m->heartbeat);
	clerk_free(&m->upkeeper);
}

/* --- orders ------------------------------------------------------------- */

static void
jobs_drain(struct master *m)
{
	(void)m; /* job_dispatch.c takes nothing while m->is_draining */
}

static void
jobs_undrain(struct master *m)
{
	job_dispatch_run(m->jobs);
	heartbeat_send(m->heartbeat);
}

static void
jobs_reload(struct master *m)
{
	job_dispatch_reload(m->jobs);
}

/* --- what happens ------------------------------------------------------- */

static void
jobs_on_redis_up(struct master *m)
{
	heartbeat_send(m->heartbeat);
}

static void
jobs_on_redis_down(struct master *m)
{
	(void)m; /* bells and heartbeat try again by themselves */
}

static void
jobs_on_postgres_up(struct master *m)
{
	(void)m; /* the next sweep finds what is due */
}

static void
jobs_on_ready(struct master *m, struct child *child)
{
	pool_child_ready(child);
	job_dispatch_run(m->jobs);
}

static void
jobs_on_child_end(struct master *m, struct child *child)
{
	job_dispatch_child_end(m->jobs, child);
}

static void
jobs_on_event(struct master *m, const struct msg_event *event, bool is_own)
{
	if (event->event != EVENT_ACCOUNT_STATE)
		return;
	/* An event may be lost; the set is looked at by every claimer. */
	if (is_own)
		hints_set_live(m->redis, &event->account_id,
		    strcmp(event->name, "live") == 0);
	if (!uuid_is_null(&event->account_id))
		job_dispatch_on_state(m->jobs, &event->account_id,
		    event->name);
}

/* --- what is shown ------------------------------------------------------ */

static struct account *
jobs_find_account(struct master *m, const char *name, struct err *err)
{
	(void)m, (void)name;
	err_set(err, ERR_PERMANENT,
	    "this is a jobs worker, it owns no accounts");
	return NULL;
}

static void
jobs_count(const struct master *m, struct role_figures *figures)
{
	(void)m, (void)figures; /* it owns nothing */
}

static void
jobs_describe(const struct master *m, json_t *beat)
{
	reply_number(beat, "running", (int64_t)job_dispatch_running(m->jobs));
}

static void
jobs_add_status(const struct master *m, json_t *reply)
{
	reply_number(reply, "jobs_running",
	    (int64_t)job_dispatch_running(m->jobs));
	reply_number(reply, "jobs_waiting",
	    (int64_t)job_dispatch_waiting(m->jobs));
}

static void
jobs_add_metrics(const struct master *m, struct buf *out)
{
	metrics_gauge(out, "jobs_running", "", "Jobs under way.",
	    (int64_t)job_dispatch_running(m->jobs));
	metrics_gauge(out, "jobs_waiting", "", "Jobs waiting for a child.",
	    (int64_t)job_dispatch_waiting(m->jobs));
}

static void
jobs_dump(const struct master *m)
{
	(void)m; /* what runs is seen by its children */
}

const struct role_ops role_jobs = {
	.name = "jobs",
	.n_clerks = 2, /* one more, for what takes its time */
	.start = jobs_start,
	.stop = jobs_stop,
	.is_quiet = jobs_is_quiet,
	.end = jobs_end,
	.drain = jobs_drain,
	.undrain = jobs_undrain,
	.reload = jobs_reload,
	.on_redis_up = jobs_on_redis_up,
	.on_redis_down = jobs_on_redis_down,
	.on_postgres_up = jobs_on_postgres_up,
	.on_ready = jobs_on_ready,
	.on_child_end = jobs_on_child_end,
	.on_event = jobs_on_event,
	.find_account = jobs_find_account,
	.count = jobs_count,
	.describe = jobs_describe,
	.add_status = jobs_add_status,
	.add_metrics = jobs_add_metrics,
	.dump = jobs_dump,
};
