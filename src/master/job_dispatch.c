/*
 * job_dispatch.c - jobs on their way from the bell to a child.
 *
 * Runs in: master of the jobs role.  Never blocks.
 *
 * Two queues that share nothing but the children's code: a storm of backfills
 * cannot take a place from a send (R-JOB-1).  The master moves ids only; what
 * a job is, whether it is due and what became of it is in PostgreSQL, so an
 * id lost anywhere here comes again with a sweep, and one that comes twice is
 * refused by the table.
 */
#include "master/job_dispatch.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "child/child.h" /* struct job_task */
#include "lease/bell.h"
#include "lease/idmap.h"
#include "master/child_end.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/crash_note.h"
#include "master/pool.h"
#include "redis/loop.h"
#include "redis/redis.h"

#include <bsd/string.h>
#include <bsd/sys/queue.h>

#include <limits.h>
#include <stdlib.h>

/* The child ends a job by itself at the timeout; this much later it hangs. */
#define GRACE_MSECS 5000
/* Jobs that wait here for a child; the rest waits in Redis. */
#define WAITING_MAX 1000
/* An idle child is kept so long. */
#define LINGER_MSECS 30000
/* A child that lived no longer than this ended early: the next is started so
 * much later.  Not growing: people wait for what these do. */
#define EARLY_MSECS 1000
/* Well within JOB_LOCK_SECS, also when the clerk is busy. */
#define HOLD_MSECS (JOB_LOCK_SECS * 1000 / 6)

enum { QUEUES = 2 };

static const char *const queue_names[QUEUES] = { "interactive", "bulk" };

struct running_job {
	TAILQ_ENTRY(running_job) entry;
	struct uuid id;
	unsigned queue;
	struct child *child; /* NULL: waits */
	bool is_taken;	     /* the child has told that it has this one */
	bool is_yielding;
	/* Another's ring brought this job: its own, when it comes, stands for
	 * that one. */
	bool has_owed;
	struct uuid owed;
};

struct job_queue {
	struct job_dispatch *jobs;
	unsigned number;
	struct bell *bell;
	TAILQ_HEAD(, running_job) waiting;
	size_t n_waiting, n_running;
	struct uuid *due; /* of the sweep under way */
	size_t n_due, cap_due;
};

struct job_dispatch {
	struct master *m;
	struct log log;
	struct job_queue queues[QUEUES];
	struct idmap known; /* waiting or running here */
	struct event *sweep;
	struct event *hold;
	struct event *upkeep;
	struct event *trim;
	struct event *again;
	struct job_task task;
	struct child_pool *pool;
	bool is_stopped;
};

static size_t
queue_cap(const struct job_queue *queue)
{
	const struct conf *conf = queue->jobs->m->conf;

	return (size_t)(queue->number == 0 ? conf->interactive_concurrency :
	    conf->bulk_concurrency);
}

static bool
queue_has_room(void *arg)
{
	struct job_queue *queue = arg;

	return !queue->jobs->is_stopped && !queue->jobs->m->is_draining &&
	    queue->n_waiting + queue->n_running < queue_cap(queue);
}

const struct uuid *
running_job_id(const struct running_job *job)
{
	return job != NULL ? &job->id : NULL;
}

/* --- children ----------------------------------------------------------- */

static size_t
job_children_min(const struct conf *conf)
{
	return (size_t)conf->pool_min;
}

static size_t
job_children_max(const struct conf *conf)
{
	return (size_t)(conf->interactive_concurrency +
	    conf->bulk_concurrency);
}

static int64_t
job_children_pause(const struct conf *conf, unsigned n)
{
	(void)conf, (void)n;
	return EARLY_MSECS;
}

static const struct pool_rules job_children = {
	.kind = KIND_JOB, .min = job_children_min, .max = job_children_max,
	.linger_msecs = LINGER_MSECS, .early_msecs = EARLY_MSECS,
	.pause = job_children_pause,
};

static void
queue_start_job(struct job_queue *queue, struct running_job *job,
    struct child *child)
{
	const struct conf *conf = queue->jobs->m->conf;
	int64_t timeout = queue->number == 0 ? conf->interactive_timeout :
	    conf->bulk_timeout;
	struct msg_job_start start = { .job_id = job->id,
		.timeout_secs = timeout, .is_bulk = queue->number == 1 };

	TAILQ_REMOVE(&queue->waiting, job, entry);
	queue->n_waiting--;
	queue->n_running++;
	job->child = child;
	child->job = job;
	child->account_id = (struct uuid){ .bytes = { 0 } };
	child->has_reported = false;
	slot_clear_note(child->slot);
	child_works(child, timeout * 1000 + GRACE_MSECS);
	if (child_send(child, MSG_JOB_START, &start) == -1)
		child_kill(child, "took no work");
}

static void
queue_serve(struct job_queue *queue)
{
	struct job_dispatch *jobs = queue->jobs;
	struct child *child;
	struct running_job *job;

	while ((job = TAILQ_FIRST(&queue->waiting)) != NULL &&
	    queue->n_running < queue_cap(queue) &&
	    (child = pool_idle(jobs->pool)) != NULL)
		queue_start_job(queue, job, child);
}

void
job_dispatch_run(struct job_dispatch *jobs)
{
	unsigned starts_left = UINT_MAX;
	int64_t now = clock_mono_msecs(), next;
	size_t i, want = 0;

	if (jobs->is_stopped)
		return;
	for (i = 0; i < QUEUES; i++) {
		struct job_queue *queue = &jobs->queues[i];
		size_t room;

		queue_serve(queue);
		room = queue_cap(queue) > queue->n_running ?
		    queue_cap(queue) - queue->n_running : 0;
		want += room < queue->n_waiting ? room : queue->n_waiting;
	}
	next = pool_grow(jobs->pool, want, &starts_left, now);
	if (next != INT64_MAX)
		event_in_msecs(jobs->again, next - now);
	for (i = 0; i < QUEUES; i++)
		bell_listen(jobs->queues[i].bell);
}

/* --- in and out --------------------------------------------------------- */

static void
queue_add(struct job_queue *queue, const struct uuid *id)
{
	struct job_dispatch *jobs = queue->jobs;
	struct running_job *job = idmap_get(&jobs->known, id);

	if (job != NULL && job->has_owed) {
		job->has_owed = false;
		id = &job->owed;
	}
	if (idmap_get(&jobs->known, id) != NULL ||
	    queue->n_waiting >= WAITING_MAX)
		return;
	job = xcalloc(1, sizeof(*job));
	job->id = *id;
	job->queue = queue->number;
	idmap_put(&jobs->known, id, job);
	TAILQ_INSERT_TAIL(&queue->waiting, job, entry);
	queue->n_waiting++;
}

/* A child knows which job it has; a ring for a bulk job says only that there
 * is one, and who was told to stop may have let go of it already. */
static bool
running_job_is_certain(const struct running_job *job)
{
	return job->child != NULL && ((job->is_taken &&
	    !job->is_yielding) || job->queue == 0);
}

/*
 * A ring for a bulk job brings the one whose turn it is: from here on the
 * child's work has that id.  Where this id waits here too, or was given to a
 * child that will hardly get it, that ring stands for the other one now.
 */
void
job_dispatch_taken(struct job_dispatch *jobs, struct child *child,
    const struct msg_job_taken *taken)
{
	struct running_job *job = child->job, *other;

	if (job == NULL)
		return;
	if (uuid_is_equal(&job->id, &taken->job_id)) {
		job->is_taken = true;
		return;
	}
	other = idmap_get(&jobs->known, &taken->job_id);
	if (other != NULL && running_job_is_certain(other)) {
		child_talks_nonsense(child, "takes a job that runs here");
		return;
	}
	idmap_remove(&jobs->known, &job->id);
	if (other != NULL) {
		idmap_remove(&jobs->known, &other->id);
		other->id = job->id;
		other->is_taken = false;
		idmap_put(&jobs->known, &other->id, other);
	} else {
		job->has_owed = true;
		job->owed = job->id;
	}
	job->id = taken->job_id;
	job->is_taken = true;
	idmap_put(&jobs->known, &job->id, job);
}

/* Those who had their turn go on in another. */
void
job_dispatch_yield(struct job_dispatch *jobs, const struct msg_ids *ids)
{
	static const struct msg_empty nothing;
	struct running_job *job;
	uint32_t i;

	for (i = 0; i < ids->n; i++) {
		job = idmap_get(&jobs->known, &ids->ids[i]);
		if (job == NULL || job->child == NULL)
			continue;
		job->is_yielding = true;
		child_send(job->child, MSG_JOB_YIELD, &nothing);
	}
}

static void
queue_push_again(struct job_dispatch *jobs, const struct uuid *id,
    unsigned queue)
{
	/* Lost, it comes with a sweep. */
	bell_ring(jobs->m->redis, queue_names[queue], id, 1);
}

static void
running_job_finish(struct job_dispatch *jobs, struct running_job *job)
{
	struct job_queue *queue = &jobs->queues[job->queue];

	if (job->child != NULL)
		queue->n_running--;
	idmap_remove(&jobs->known, &job->id);
	free(job);
}

static void
queue_on_job(void *arg, const struct uuid *id)
{
	struct job_queue *queue = arg;

	queue_add(queue, id);
	job_dispatch_run(queue->jobs);
}

void
job_dispatch_done(struct job_dispatch *jobs, struct child *child,
    const struct msg_job_done *done)
{
	char id[UUID_TEXT_SIZE], account[UUID_TEXT_SIZE];
	struct running_job *job = child->job;

	if (done->is_again)
		queue_push_again(jobs, &job->id, job->queue);
	uuid_format(&job->id, id);
	uuid_format(&done->account_id, account);
	child->job = NULL;
	child->account_id = (struct uuid){ .bytes = { 0 } };
	running_job_finish(jobs, job);
	if (done->is_again) {
		log_info(&jobs->log, "job lets others go first job_id=%s "
		    "account_id=%s kind=%s msecs=%lld", id, account,
		    done->kind, (long long)done->msecs);
	} else if (done->outcome == ERR_NONE) {
		jobs->m->counters.jobs_done++;
		log_info(&jobs->log, "job done job_id=%s account_id=%s "
		    "kind=%s msecs=%lld", id, account, done->kind,
		    (long long)done->msecs);
	} else if (done->outcome == ERR_GONE) {
		log_debug(&jobs->log, "job not taken job_id=%s: %s", id,
		    done->text);
	} else {
		jobs->m->counters.jobs_failed++;
		jobs->m->counters.errors++;
		log_warn(&jobs->log, "job failed%s job_id=%s account_id=%s "
		    "kind=%s outcome=%s: %s", done->is_dead ? " for good" : "",
		    id, account, done->kind, err_kind_name(done->outcome),
		    done->text);
	}
	if (jobs->is_stopped)
		child_stop(child, "shutdown");
	else
		pool_child_done(child);
}

/* Any worker may take them; without Redis, this one does. */
static void
job_dispatch_on_swept(struct master *m, const struct uuid *about,
    enum err_kind outcome, const char *text)
{
	struct job_dispatch *jobs = m->jobs;
	size_t i, k;

	(void)about;
	(void)outcome;
	(void)text;
	for (i = 0; i < QUEUES; i++) {
		struct job_queue *queue = &jobs->queues[i];

		if (queue->n_due > 0 && bell_ring(m->redis, queue_names[i],
			queue->due, queue->n_due) == -1)
			for (k = 0; k < queue->n_due; k++)
				queue_add(queue, &queue->due[k]);
		queue->n_due = 0;
	}
	job_dispatch_run(jobs);
}

/* Counts as an attempt, unless it got further, and comes again (R-JOB-2). */
static void
running_job_lose(struct job_dispatch *jobs, struct running_job *job,
    struct child *child)
{
	struct msg_job_lost lost = { .job_id = job->id };
	char id[UUID_TEXT_SIZE], how[64];

	child->job = NULL;
	snprintf(lost.how, sizeof(lost.how), "lost with its process: %s",
	    child_end(child) == END_HUNG ? "timeout" : child_exit_describe(
		child->wait_status, how, sizeof(how)));
	log_error(&jobs->log, "job %s job_id=%s pid=%d", lost.how,
	    uuid_format(&job->id, id), (int)child->pid);
	strlcpy(lost.owner, jobs->m->worker_id, sizeof(lost.owner));
	/* The answer tells what is due now, as a sweep's does. */
	clerk_ask(jobs->m->clerk, MSG_JOB_LOST, &lost, sizeof(lost), NULL,
	    job_dispatch_on_swept);
	jobs->m->counters.jobs_failed++;
	jobs->m->counters.errors++;
	running_job_finish(jobs, job);
}

void
job_dispatch_child_end(struct job_dispatch *jobs, struct child *child)
{
	struct running_job *job = child->job;
	struct slot_note note;
	bool is_known = crash_note_report(jobs->m, child, &note);

	pool_child_ended(child, is_known, clock_mono_msecs());
	if (job != NULL && child_end_meaning(child) == MEANS_JOB_LOST)
		running_job_lose(jobs, job, child);
	job_dispatch_run(jobs);
}

/* --- holding ------------------------------------------------------------ */

/* The rows of the jobs that run here stay ours (JOB_LOCK_SECS). */
static void
job_dispatch_hold(struct job_dispatch *jobs)
{
	struct msg_hold_jobs hold = { .n = 0 };
	struct running_job *job;
	size_t at;

	if (clerk_is_asked(jobs->m->clerk, MSG_HOLD_JOBS))
		return;
	strlcpy(hold.owner, jobs->m->worker_id, sizeof(hold.owner));
	for (at = 0; (job = idmap_next(&jobs->known, &at, NULL)) != NULL;) {
		if (job->child == NULL)
			continue;
		hold.ids[hold.n++] = job->id;
		if (hold.n == MSG_IDS_MAX) {
			clerk_ask(jobs->m->clerk, MSG_HOLD_JOBS, &hold,
			    sizeof(hold), NULL, NULL);
			hold.n = 0;
		}
	}
	if (hold.n > 0)
		clerk_ask(jobs->m->clerk, MSG_HOLD_JOBS, &hold, sizeof(hold),
		    NULL, NULL);
}

static void
job_dispatch_on_hold(evutil_socket_t fd, short what, void *arg)
{
	struct job_dispatch *jobs = arg;

	(void)fd;
	(void)what;
	event_in_msecs(jobs->hold, HOLD_MSECS);
	job_dispatch_hold(jobs);
}

/* --- sweeps ------------------------------------------------------------- */

void
job_dispatch_due(struct job_dispatch *jobs, const struct msg_due_jobs *due)
{
	struct job_queue *queue = &jobs->queues[due->queue];
	uint32_t i;

	for (i = 0; i < due->n; i++) {
		if (idmap_get(&jobs->known, &due->ids[i]) != NULL)
			continue;
		GROW(queue->due, queue->n_due, queue->cap_due);
		queue->due[queue->n_due++] = due->ids[i];
	}
}

static void
job_dispatch_on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct job_dispatch *jobs = arg;
	struct master *m = jobs->m;
	struct msg_sweep sweep = { .slice_secs = m->conf->bulk_slice };

	(void)fd;
	(void)what;
	event_in_msecs(jobs->sweep, m->conf->sweep_interval * 1000);
	if (m->is_draining || clerk_is_asked(m->clerk, MSG_SWEEP))
		return;
	/* What runs here is held before anybody looks for what is lost. */
	job_dispatch_hold(jobs);
	strlcpy(sweep.owner, m->worker_id, sizeof(sweep.owner));
	clerk_ask(m->clerk, MSG_SWEEP, &sweep, sizeof(sweep), NULL,
	    job_dispatch_on_swept);
}

static void
job_dispatch_on_upkeep(evutil_socket_t fd, short what, void *arg)
{
	struct job_dispatch *jobs = arg;
	struct msg_empty empty = { 0 };
	struct master *m = jobs->m;

	(void)fd;
	(void)what;
	event_in_msecs(jobs->upkeep, m->conf->search_merge_interval * 1000);
	if (!m->is_draining && m->is_postgres_up &&
	    !clerk_is_asked(m->upkeeper, MSG_UPKEEP))
		clerk_ask(m->upkeeper, MSG_UPKEEP, &empty, sizeof(empty), NULL,
		    NULL);
}

static void
job_dispatch_on_trim(evutil_socket_t fd, short what, void *arg)
{
	struct job_dispatch *jobs = arg;

	(void)fd;
	(void)what;
	event_in_msecs(jobs->trim, LINGER_MSECS / 3);
	pool_trim(jobs->pool, clock_mono_msecs());
	job_dispatch_run(jobs);
}

/* More children may be started now. */
static void
job_dispatch_on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	job_dispatch_run(arg);
}

/*
 * Its jobs end in the middle: the child gives its job back, and whoever takes
 * it again finds that there is nothing to do.
 */
void
job_dispatch_on_state(struct job_dispatch *jobs, const struct uuid *account_id,
    const char *state)
{
	struct running_job *job;
	size_t at;

	if (strcmp(state, "disabled") != 0 && strcmp(state, "deleted") != 0)
		return;
	for (at = 0; (job = idmap_next(&jobs->known, &at, NULL)) != NULL;)
		if (job->child != NULL && uuid_is_equal(
			&job->child->account_id, account_id))
			child_stop(job->child,
			    "its account is to be left alone");
}

/* --- life --------------------------------------------------------------- */

void
job_dispatch_reload(struct job_dispatch *jobs)
{
	pool_reload(jobs->pool);
	job_dispatch_run(jobs);
}

void
job_dispatch_stop(struct job_dispatch *jobs)
{
	size_t i;

	jobs->is_stopped = true;
	event_del(jobs->sweep);
	event_del(jobs->upkeep);
	event_del(jobs->hold);
	event_del(jobs->trim);
	event_del(jobs->again);
	for (i = 0; i < QUEUES; i++)
		bell_free(&jobs->queues[i].bell);
}

size_t
job_dispatch_running(const struct job_dispatch *jobs)
{
	return jobs->queues[0].n_running + jobs->queues[1].n_running;
}

size_t
job_dispatch_waiting(const struct job_dispatch *jobs)
{
	return jobs->queues[0].n_waiting + jobs->queues[1].n_waiting;
}

struct job_dispatch *
job_dispatch_new(struct master *m)
{
	struct job_dispatch *jobs = xcalloc(1, sizeof(*jobs));
	unsigned i;

	jobs->m = m;
	log_init(&jobs->log, LOG_JOBS, "%s", "");
	for (i = 0; i < QUEUES; i++) {
		struct job_queue *queue = &jobs->queues[i];

		queue->jobs = jobs;
		queue->number = i;
		TAILQ_INIT(&queue->waiting);
		queue->bell = bell_new(&(struct bell_params){.base = m->base,
		    .conf = m->conf,
		    .queue = queue_names[i],
		    .has_room = queue_has_room,
		    .on_job = queue_on_job,
		    .arg = queue});
	}
	jobs->sweep = event_new(m->base, -1, 0, job_dispatch_on_sweep, jobs);
	jobs->hold = event_new(m->base, -1, 0, job_dispatch_on_hold, jobs);
	jobs->upkeep = event_new(m->base, -1, 0, job_dispatch_on_upkeep, jobs);
	jobs->trim = event_new(m->base, -1, 0, job_dispatch_on_trim, jobs);
	jobs->again = event_new(m->base, -1, 0, job_dispatch_on_again, jobs);
	strlcpy(jobs->task.worker_id, m->worker_id,
	    sizeof(jobs->task.worker_id));
	jobs->pool = pool_new(m, &job_children, &jobs->task);
	event_in_msecs(jobs->sweep, 0);
	event_in_msecs(jobs->hold, HOLD_MSECS);
	event_in_msecs(jobs->upkeep, m->conf->search_merge_interval * 1000);
	event_in_msecs(jobs->trim, LINGER_MSECS / 3);
	return jobs;
}

void
job_dispatch_free(struct job_dispatch **jobs_p)
{
	struct job_dispatch *jobs = *jobs_p;
	struct running_job *job;
	size_t i;

	if (jobs == NULL)
		return;
	*jobs_p = NULL;
	for (i = 0; i < QUEUES; i++) {
		bell_free(&jobs->queues[i].bell);
		free(jobs->queues[i].due);
	}
	for (i = 0; (job = idmap_next(&jobs->known, &i, NULL)) != NULL;)
		free(job);
	idmap_release(&jobs->known);
	event_free(jobs->sweep);
	event_free(jobs->upkeep);
	event_free(jobs->hold);
	event_free(jobs->trim);
	event_free(jobs->again);
	pool_free(&jobs->pool);
	free(jobs);
}
