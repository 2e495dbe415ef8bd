/*
 * job.c - one job at a time.
 *
 * Runs in: job children of the jobs master.  Blocking, a straight line.
 */
#include "child/child.h"

#include "base/clock.h"
#include "child/hooks.h"
#include "child/limits.h"
#include "jobs/jobs.h"

#include <malloc.h>
#include <unistd.h>

static void
job_on_taken(void *arg, const struct job *job)
{
	struct msg_job_taken taken = { job->id, job->account_id };

	runtime_send(arg, MSG_JOB_TAKEN, &taken);
}

static void
child_job_perform(struct runtime *rt, struct child_hooks *hooks,
    const char *worker_id, const struct msg_job_start *task)
{
	const struct job_call call = {
	    .ring = {task->job_id, task->is_bulk},
	    .timeout_secs = task->timeout_secs,
	    .on_taken = job_on_taken,
	    .arg = rt,
	};
	const struct job_env env = {
		.conf = child_conf(),
		.hooks = &hooks->hooks,
		.worker_id = worker_id,
		.log = rt->log,
	};
	struct job_outcome outcome;
	struct msg_job_done done;
	int64_t started = clock_mono_msecs();

	rt->must_yield = false;
	job_perform(&env, &call, &outcome);
	memset(&done, 0, sizeof(done));
	done.job_id = task->job_id;
	done.account_id = outcome.account_id;
	done.outcome = outcome.failure.kind;
	done.is_dead = outcome.is_dead;
	done.is_again = outcome.is_again;
	done.msecs = clock_mono_msecs() - started;
	snprintf(done.kind, sizeof(done.kind), "%s", outcome.kind);
	snprintf(done.text, sizeof(done.text), "%s",
	    outcome.failure.kind == ERR_NONE ? "" : outcome.failure.text);
	runtime_send(rt, MSG_JOB_DONE, &done);
}

void
job_main(const struct child_start *start)
{
	struct job_task task = *(const struct job_task *)start->task;
	struct runtime rt;
	struct child_hooks hooks;
	struct frame frame;

	runtime_init(&rt, start);
	child_hooks_init(&hooks, &rt, KIND_JOB);
	limits_start();
	for (;;) {
		if (rt.is_stopping)
			_exit(EXIT_DONE);
		runtime_activity(&rt, "waiting");
		proc_set_title("job waiting");
		if (runtime_next(&rt, &frame, -1) != 1)
			continue;
		switch (frame.header.type) {
		case MSG_STOP:
			_exit(EXIT_DONE);
		case MSG_JOB_START:
			child_job_perform(&rt, &hooks, task.worker_id,
			    &frame.payload.job_start);
			malloc_trim(0);
			break;
		default:
			log_warn(&rt.log, "not for a job child: %s",
			    msg_type_name(frame.header.type));
		}
	}
}
