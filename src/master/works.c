/*
 * works.c - jobs on their way from the bell to a child.
 *
 * Runs in: master of the jobs role.  Never blocks.
 *
 * Two queues that share nothing but the children's code: a storm of backfills
 * cannot take a place from a send (R-JOB-1).  The master moves ids only; what
 * a job is, whether it is due and what became of it is in PostgreSQL, so an
 * id lost anywhere here comes again with a sweep, and one that comes twice is
 * refused by the table.
 */
#include "master/works.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "child/child.h" /* struct job_task */
#include "lease/bell.h"
#include "lease/idmap.h"
#include "redis/loop.h"
#include "redis/redis.h"
#include "master/child_end.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/crash_note.h"
#include "master/pool.h"

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

struct work {
	TAILQ_ENTRY(work) entry;
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

struct queue {
	struct works *works;
	unsigned number;
	struct bell *bell;
	TAILQ_HEAD(, work) waiting;
	size_t n_waiting, n_running;
	struct uuid *due; /* of the sweep under way */
	size_t n_due, cap_due;
};

struct works {
	struct master *m;
	struct log log;
	struct queue queues[QUEUES];
	struct idmap known; /* waiting or running here */
	struct event *sweep;
	struct event *hold;
	struct event *upkeep;
	struct event *trim;
	struct event *again;
	struct job_task task;
	struct pool *pool;
	bool is_stopped;
};

static size_t
cap_of(const struct queue *queue)
{
	const struct conf *conf = queue->works->m->conf;

	return (size_t)(queue->number == 0 ? conf->interactive_concurrency :
	    conf->bulk_concurrency);
}

static bool
has_room(void *arg)
{
	struct queue *queue = arg;

	return !queue->works->is_stopped && !queue->works->m->is_draining &&
	    queue->n_waiting + queue->n_running < cap_of(queue);
}

const struct uuid *
work_id(const struct work *work)
{
	return work != NULL ? &work->id : NULL;
}

/* --- children ----------------------------------------------------------- */

static size_t
jobs_min(const struct conf *conf)
{
	return (size_t)conf->pool_min;
}

static size_t
jobs_max(const struct conf *conf)
{
	return (size_t)(conf->interactive_concurrency +
	    conf->bulk_concurrency);
}

static int64_t
jobs_pause(const struct conf *conf, unsigned n)
{
	(void)conf, (void)n;
	return EARLY_MSECS;
}

static const struct pool_rules job_children = {
	.kind = KIND_JOB, .min = jobs_min, .max = jobs_max,
	.linger_msecs = LINGER_MSECS, .early_msecs = EARLY_MSECS,
	.pause = jobs_pause,
};

static void
start_work(struct queue *queue, struct work *work, struct child *child)
{
	const struct conf *conf = queue->works->m->conf;
	int64_t timeout = queue->number == 0 ? conf->interactive_timeout :
	    conf->bulk_timeout;
	struct msg_job_start start = { .job_id = work->id,
		.timeout_secs = timeout, .is_bulk = queue->number == 1 };

	TAILQ_REMOVE(&queue->waiting, work, entry);
	queue->n_waiting--;
	queue->n_running++;
	work->child = child;
	child->work = work;
	child->account_id = (struct uuid){ .bytes = { 0 } };
	child->has_reported = false;
	slot_clear_note(child->slot);
	child_works(child, timeout * 1000 + GRACE_MSECS);
	if (child_send(child, MSG_JOB_START, &start) == -1)
		child_kill(child, "took no work");
}

static void
serve(struct queue *queue)
{
	struct works *works = queue->works;
	struct child *child;
	struct work *work;

	while ((work = TAILQ_FIRST(&queue->waiting)) != NULL &&
	    queue->n_running < cap_of(queue) &&
	    (child = pool_idle(works->pool)) != NULL)
		start_work(queue, work, child);
}

void
works_run(struct works *works)
{
	unsigned starts_left = UINT_MAX;
	int64_t now = clock_mono_msecs(), next;
	size_t i, want = 0;

	if (works->is_stopped)
		return;
	for (i = 0; i < QUEUES; i++) {
		struct queue *queue = &works->queues[i];
		size_t room;

		serve(queue);
		room = cap_of(queue) > queue->n_running ?
		    cap_of(queue) - queue->n_running : 0;
		want += room < queue->n_waiting ? room : queue->n_waiting;
	}
	next = pool_grow(works->pool, want, &starts_left, now);
	if (next != INT64_MAX)
		event_in_msecs(works->again, next - now);
	for (i = 0; i < QUEUES; i++)
		bell_listen(works->queues[i].bell);
}

/* --- in and out --------------------------------------------------------- */

static void
add(struct queue *queue, const struct uuid *id)
{
	struct works *works = queue->works;
	struct work *work = idmap_get(&works->known, id);

	if (work != NULL && work->has_owed) {
		work->has_owed = false;
		id = &work->owed;
	}
	if (idmap_get(&works->known, id) != NULL ||
	    queue->n_waiting >= WAITING_MAX)
		return;
	work = xcalloc(1, sizeof(*work));
	work->id = *id;
	work->queue = queue->number;
	idmap_put(&works->known, id, work);
	TAILQ_INSERT_TAIL(&queue->waiting, work, entry);
	queue->n_waiting++;
}

/* A child knows which job it has; a ring for a bulk job says only that there
 * is one, and who was told to stop may have let go of it already. */
static bool
is_certain(const struct work *work)
{
	return work->child != NULL && ((work->is_taken &&
	    !work->is_yielding) || work->queue == 0);
}

/*
 * A ring for a bulk job brings the one whose turn it is: from here on the
 * child's work has that id.  Where this id waits here too, or was given to a
 * child that will hardly get it, that ring stands for the other one now.
 */
void
works_taken(struct works *works, struct child *child,
    const struct msg_job_taken *taken)
{
	struct work *work = child->work, *other;

	if (work == NULL)
		return;
	if (uuid_is_equal(&work->id, &taken->job_id)) {
		work->is_taken = true;
		return;
	}
	other = idmap_get(&works->known, &taken->job_id);
	if (other != NULL && is_certain(other)) {
		child_talks_nonsense(child, "takes a job that runs here");
		return;
	}
	idmap_remove(&works->known, &work->id);
	if (other != NULL) {
		idmap_remove(&works->known, &other->id);
		other->id = work->id;
		other->is_taken = false;
		idmap_put(&works->known, &other->id, other);
	} else {
		work->has_owed = true;
		work->owed = work->id;
	}
	work->id = taken->job_id;
	work->is_taken = true;
	idmap_put(&works->known, &work->id, work);
}

/* Those who had their turn go on in another. */
void
works_yield(struct works *works, const struct msg_ids *ids)
{
	static const struct msg_empty nothing;
	struct work *work;
	uint32_t i;

	for (i = 0; i < ids->n; i++) {
		work = idmap_get(&works->known, &ids->ids[i]);
		if (work == NULL || work->child == NULL)
			continue;
		work->is_yielding = true;
		child_send(work->child, MSG_JOB_YIELD, &nothing);
	}
}

static void
ring_again(struct works *works, const struct uuid *id, unsigned queue)
{
	/* Lost, it comes with a sweep. */
	bell_ring(works->m->redis, queue_names[queue], id, 1);
}

static void
finish(struct works *works, struct work *work)
{
	struct queue *queue = &works->queues[work->queue];

	if (work->child != NULL)
		queue->n_running--;
	idmap_remove(&works->known, &work->id);
	free(work);
}

static void
on_job(void *arg, const struct uuid *id)
{
	struct queue *queue = arg;

	add(queue, id);
	works_run(queue->works);
}

void
works_done(struct works *works, struct child *child,
    const struct msg_job_done *done)
{
	char job[UUID_TEXT_SIZE], account[UUID_TEXT_SIZE];
	struct work *work = child->work;

	if (done->is_again)
		ring_again(works, &work->id, work->queue);
	uuid_format(&work->id, job);
	uuid_format(&done->account_id, account);
	child->work = NULL;
	child->account_id = (struct uuid){ .bytes = { 0 } };
	finish(works, work);
	if (done->is_again) {
		log_info(&works->log, "job lets others go first job_id=%s "
		    "account_id=%s kind=%s msecs=%lld", job, account,
		    done->kind, (long long)done->msecs);
	} else if (done->outcome == ERR_NONE) {
		works->m->counters.jobs_done++;
		log_info(&works->log, "job done job_id=%s account_id=%s "
		    "kind=%s msecs=%lld", job, account, done->kind,
		    (long long)done->msecs);
	} else if (done->outcome == ERR_GONE) {
		log_debug(&works->log, "job not taken job_id=%s: %s", job,
		    done->text);
	} else {
		works->m->counters.jobs_failed++;
		works->m->counters.errors++;
		log_warn(&works->log, "job failed%s job_id=%s account_id=%s "
		    "kind=%s outcome=%s: %s", done->is_dead ? " for good" : "",
		    job, account, done->kind, err_kind_name(done->outcome),
		    done->text);
	}
	if (works->is_stopped)
		child_stop(child, "shutdown");
	else
		pool_child_done(child);
}

/* Any worker may take them; without Redis, this one does. */
static void
on_swept(struct master *m, const struct uuid *about, enum err_kind outcome,
    const char *text)
{
	struct works *works = m->works;
	size_t i, k;

	(void)about;
	(void)outcome;
	(void)text;
	for (i = 0; i < QUEUES; i++) {
		struct queue *queue = &works->queues[i];

		if (queue->n_due > 0 && bell_ring(m->redis, queue_names[i],
			queue->due, queue->n_due) == -1)
			for (k = 0; k < queue->n_due; k++)
				add(queue, &queue->due[k]);
		queue->n_due = 0;
	}
	works_run(works);
}

/* Counts as an attempt, unless it got further, and comes again (R-JOB-2). */
static void
lose(struct works *works, struct work *work, struct child *child)
{
	struct msg_job_lost lost = { .job_id = work->id };
	char job[UUID_TEXT_SIZE], how[64];

	child->work = NULL;
	snprintf(lost.how, sizeof(lost.how), "lost with its process: %s",
	    child_end(child) == END_HUNG ? "timeout" : child_exit_describe(
		child->wait_status, how, sizeof(how)));
	log_error(&works->log, "job %s job_id=%s pid=%d", lost.how,
	    uuid_format(&work->id, job), (int)child->pid);
	strlcpy(lost.owner, works->m->worker_id, sizeof(lost.owner));
	/* The answer tells what is due now, as a sweep's does. */
	clerk_ask(works->m->clerk, MSG_JOB_LOST, &lost, sizeof(lost), NULL,
	    on_swept);
	works->m->counters.jobs_failed++;
	works->m->counters.errors++;
	finish(works, work);
}

void
works_child_ended(struct works *works, struct child *child)
{
	struct work *work = child->work;
	struct slot_note note;
	bool is_known = crash_note_report(works->m, child, &note);

	pool_child_ended(child, is_known, clock_mono_msecs());
	if (work != NULL && child_end_meaning(child) == MEANS_JOB_LOST)
		lose(works, work, child);
	works_run(works);
}

/* --- holding ------------------------------------------------------------ */

/* The rows of the jobs that run here stay ours (JOB_LOCK_SECS). */
static void
works_hold(struct works *works)
{
	struct msg_hold_jobs hold = { .n = 0 };
	struct work *work;
	size_t at;

	if (clerk_is_asked(works->m->clerk, MSG_HOLD_JOBS))
		return;
	strlcpy(hold.owner, works->m->worker_id, sizeof(hold.owner));
	for (at = 0; (work = idmap_next(&works->known, &at, NULL)) != NULL;) {
		if (work->child == NULL)
			continue;
		hold.ids[hold.n++] = work->id;
		if (hold.n == MSG_IDS_MAX) {
			clerk_ask(works->m->clerk, MSG_HOLD_JOBS, &hold,
			    sizeof(hold), NULL, NULL);
			hold.n = 0;
		}
	}
	if (hold.n > 0)
		clerk_ask(works->m->clerk, MSG_HOLD_JOBS, &hold, sizeof(hold),
		    NULL, NULL);
}

static void
on_hold(evutil_socket_t fd, short what, void *arg)
{
	struct works *works = arg;

	(void)fd;
	(void)what;
	event_in_msecs(works->hold, HOLD_MSECS);
	works_hold(works);
}

/* --- sweeps ------------------------------------------------------------- */

void
works_due(struct works *works, const struct msg_due_jobs *due)
{
	struct queue *queue = &works->queues[due->queue];
	uint32_t i;

	for (i = 0; i < due->n; i++) {
		if (idmap_get(&works->known, &due->ids[i]) != NULL)
			continue;
		GROW(queue->due, queue->n_due, queue->cap_due);
		queue->due[queue->n_due++] = due->ids[i];
	}
}

static void
on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct works *works = arg;
	struct master *m = works->m;
	struct msg_sweep sweep = { .slice_secs = m->conf->bulk_slice };

	(void)fd;
	(void)what;
	event_in_msecs(works->sweep, m->conf->sweep_interval * 1000);
	if (m->is_draining || clerk_is_asked(m->clerk, MSG_SWEEP))
		return;
	/* What runs here is held before anybody looks for what is lost. */
	works_hold(works);
	strlcpy(sweep.owner, m->worker_id, sizeof(sweep.owner));
	clerk_ask(m->clerk, MSG_SWEEP, &sweep, sizeof(sweep), NULL, on_swept);
}

static void
on_upkeep(evutil_socket_t fd, short what, void *arg)
{
	struct works *works = arg;
	struct msg_empty empty = { 0 };
	struct master *m = works->m;

	(void)fd;
	(void)what;
	event_in_msecs(works->upkeep, m->conf->search_merge_interval * 1000);
	if (!m->is_draining && m->is_postgres_up &&
	    !clerk_is_asked(m->upkeeper, MSG_UPKEEP))
		clerk_ask(m->upkeeper, MSG_UPKEEP, &empty, sizeof(empty), NULL,
		    NULL);
}

static void
on_trim(evutil_socket_t fd, short what, void *arg)
{
	struct works *works = arg;

	(void)fd;
	(void)what;
	event_in_msecs(works->trim, LINGER_MSECS / 3);
	pool_trim(works->pool, clock_mono_msecs());
	works_run(works);
}

/* More children may be started now. */
static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	works_run(arg);
}

/*
 * Its jobs end in the middle: the child gives its job back, and whoever takes
 * it again finds that there is nothing to do.
 */
void
works_state_changed(struct works *works, const struct uuid *account_id,
    const char *state)
{
	struct work *work;
	size_t at;

	if (strcmp(state, "disabled") != 0 && strcmp(state, "deleted") != 0)
		return;
	for (at = 0; (work = idmap_next(&works->known, &at, NULL)) != NULL;)
		if (work->child != NULL && uuid_is_equal(
			&work->child->account_id, account_id))
			child_stop(work->child,
			    "its account is to be left alone");
}

/* --- life --------------------------------------------------------------- */

void
works_reload(struct works *works)
{
	pool_reload(works->pool);
	works_run(works);
}

void
works_stop(struct works *works)
{
	size_t i;

	works->is_stopped = true;
	event_del(works->sweep);
	event_del(works->upkeep);
	event_del(works->hold);
	event_del(works->trim);
	event_del(works->again);
	for (i = 0; i < QUEUES; i++)
		bell_free(&works->queues[i].bell);
}

size_t
works_running(const struct works *works)
{
	return works->queues[0].n_running + works->queues[1].n_running;
}

size_t
works_waiting(const struct works *works)
{
	return works->queues[0].n_waiting + works->queues[1].n_waiting;
}

struct works *
works_new(struct master *m)
{
	struct works *works = xcalloc(1, sizeof(*works));
	unsigned i;

	works->m = m;
	log_init(&works->log, LOG_JOBS, "%s", "");
	for (i = 0; i < QUEUES; i++) {
		struct queue *queue = &works->queues[i];

		queue->works = works;
		queue->number = i;
		TAILQ_INIT(&queue->waiting);
		queue->bell = bell_new(&(struct bell_params){ .base = m->base,
		    .conf = m->conf, .queue = queue_names[i],
		    .has_room = has_room, .on_job = on_job, .arg = queue });
	}
	works->sweep = event_new(m->base, -1, 0, on_sweep, works);
	works->hold = event_new(m->base, -1, 0, on_hold, works);
	works->upkeep = event_new(m->base, -1, 0, on_upkeep, works);
	works->trim = event_new(m->base, -1, 0, on_trim, works);
	works->again = event_new(m->base, -1, 0, on_again, works);
	strlcpy(works->task.worker_id, m->worker_id,
	    sizeof(works->task.worker_id));
	works->pool = pool_new(m, &job_children, &works->task);
	event_in_msecs(works->sweep, 0);
	event_in_msecs(works->hold, HOLD_MSECS);
	event_in_msecs(works->upkeep, m->conf->search_merge_interval * 1000);
	event_in_msecs(works->trim, LINGER_MSECS / 3);
	return works;
}

void
works_free(struct works **works_p)
{
	struct works *works = *works_p;
	struct work *work;
	size_t i;

	if (works == NULL)
		return;
	*works_p = NULL;
	for (i = 0; i < QUEUES; i++) {
		bell_free(&works->queues[i].bell);
		free(works->queues[i].due);
	}
	for (i = 0; (work = idmap_next(&works->known, &i, NULL)) != NULL;)
		free(work);
	idmap_release(&works->known);
	event_free(works->sweep);
	event_free(works->upkeep);
	event_free(works->hold);
	event_free(works->trim);
	event_free(works->again);
	pool_free(&works->pool);
	free(works);
}
