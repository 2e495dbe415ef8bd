/*
 * loop.c - time: one queue of what happens when, in place of clocks, libevent
 * and random numbers.
 *
 * The product believes to run in event loops of its own.  Here is one queue
 * for all of them; before a task runs, `current` says whose code it is, and
 * with it which clocks it sees.
 */
#include "world.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "lease/alarm.h"
#include "redis/loop.h"

#include <bsd/stdlib.h>

struct process *current;

static struct {
	struct task *heap;
	size_t n, cap;
	uint64_t seq, steps;
} queue;

/* --- the queue ----------------------------------------------------------- */

static bool
is_before(const struct task *a, const struct task *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void
push(struct task task)
{
	size_t i, up;

	GROW(queue.heap, queue.n, queue.cap);
	task.seq = ++queue.seq;
	for (i = queue.n++; i > 0; i = up) {
		up = (i - 1) / 2;
		if (!is_before(&task, &queue.heap[up]))
			break;
		queue.heap[i] = queue.heap[up];
	}
	queue.heap[i] = task;
}

static struct task
pop(void)
{
	struct task first = queue.heap[0], last = queue.heap[--queue.n];
	size_t i, down;

	for (i = 0; (down = i * 2 + 1) < queue.n; i = down) {
		if (down + 1 < queue.n &&
		    is_before(&queue.heap[down + 1], &queue.heap[down]))
			down++;
		if (!is_before(&queue.heap[down], &last))
			break;
		queue.heap[i] = queue.heap[down];
	}
	queue.heap[i] = last;
	return first;
}

void
world_at(int64_t at, void (*run)(void *, uint64_t), void *arg, uint64_t tag)
{
	push((struct task){ .at = at < sim.now ? sim.now : at, .run = run,
	    .arg = arg, .tag = tag });
}

void
actor_at(struct actor *actor, int64_t at, enum urgency urgency,
    void (*run)(void *, uint64_t), void *arg, uint64_t tag)
{
	push((struct task){ .at = at < sim.now ? sim.now : at, .actor = actor,
	    .generation = actor->generation, .urgency = urgency, .run = run,
	    .arg = arg, .tag = tag });
}

static void
run(struct task *task)
{
	struct actor *actor = task->actor;

	if (actor != NULL && (!actor->is_alive ||
	    actor->generation != task->generation))
		return;
	if (actor != NULL && actor->frozen > 0) {
		GROW(actor->inbox, actor->n_inbox, actor->cap_inbox);
		actor->inbox[actor->n_inbox++] = *task;
		return;
	}
	current = actor != NULL ? actor->process : NULL;
	if (sim.is_verbose)
		log_set_process("t=%lld.%03lld %s", (long long)sim.now / 1000,
		    (long long)sim.now % 1000,
		    current != NULL ? current->m.worker_id : "");
	queue.steps++;
	task->run(task->arg, task->tag);
	current = NULL;
}

void
loop_run(int64_t until)
{
	struct task task;

	while (queue.n > 0 && queue.heap[0].at <= until && sim.failures == 0) {
		task = pop();
		sim.now = task.at;
		run(&task);
	}
	if (sim.failures == 0)
		sim.now = until;
}

uint64_t
loop_steps(void)
{
	return queue.steps;
}

/* --- stopping and continuing --------------------------------------------- */

void
actor_freeze(struct actor *actor)
{
	actor->frozen++;
}

/* By urgency; within it in the order in which it became due. */
void
actor_thaw(struct actor *actor)
{
	enum urgency urgency;
	size_t i;

	if (--actor->frozen > 0)
		return;
	for (urgency = URGENT_DEADLINE; urgency <= URGENT_REST; urgency++)
		for (i = 0; i < actor->n_inbox; i++)
			if (actor->inbox[i].urgency == urgency) {
				actor->inbox[i].at = sim.now;
				push(actor->inbox[i]);
			}
	actor->n_inbox = 0;
}

void
actor_end(struct actor *actor)
{
	actor->is_alive = false;
	actor->frozen = 0;
	free(actor->inbox);
	actor->inbox = NULL;
	actor->n_inbox = actor->cap_inbox = 0;
}

/* --- clocks --------------------------------------------------------------- */

int64_t
machine_boot(const struct machine *machine)
{
	/* Rounded down: machine_time_of_boot() rounds up. */
	return machine->boot_base +
	    sim.now * (1000000 + machine->drift_ppm) / 1000000;
}

int64_t
machine_mono(const struct machine *machine)
{
	int64_t boot = machine->asleep_since != 0 ? machine->asleep_since :
	    machine_boot(machine);

	return boot - machine->slept;
}

int64_t
machine_time_of_boot(const struct machine *machine, int64_t boot)
{
	int64_t pace = 1000000 + machine->drift_ppm;

	if (boot >= NEVER / 1000000)
		return NEVER;
	return ((boot - machine->boot_base) * 1000000 + pace - 1) / pace;
}

void
machine_sleep(struct machine *machine)
{
	machine->asleep_since = machine_boot(machine);
}

void
machine_wake(struct machine *machine)
{
	machine->slept += machine_boot(machine) - machine->asleep_since;
	machine->asleep_since = 0;
}

static const struct machine *
here(void)
{
	return current != NULL ? current->actor.machine : &sim.machines[0];
}

int64_t
clock_mono_msecs(void)
{
	return machine_mono(here());
}

int64_t
clock_boot_msecs(void)
{
	return sim.broken == BREAK_MONO ? machine_mono(here()) :
	    machine_boot(here());
}

int64_t
clock_wall_msecs(void)
{
	return machine_boot(here()) + here()->wall_offset;
}

int64_t
clock_wall_secs(void)
{
	return clock_wall_msecs() / 1000;
}

/* --- libevent -------------------------------------------------------------- */

struct event {
	struct event *next_free;
	struct process *process;
	event_callback_fn callback;
	void *arg;
	int64_t due_mono;
	uint64_t armed; /* which arming counts; 0: none */
};

static struct event *free_events;
static uint64_t armings;

static void arm(struct event *event);

static void
ring(void *arg, uint64_t armed)
{
	struct event *event = arg;

	if (event->armed != armed)
		return;
	/* The host slept meanwhile. */
	if (machine_mono(event->process->actor.machine) < event->due_mono) {
		arm(event);
		return;
	}
	event->armed = 0;
	event->callback(-1, EV_TIMEOUT, event->arg);
}

static void
arm(struct event *event)
{
	const struct machine *machine = event->process->actor.machine;
	int64_t boot = event->due_mono + machine->slept;

	event->armed = ++armings;
	actor_at(&event->process->actor, machine_time_of_boot(machine, boot),
	    URGENT_REST, ring, event, event->armed);
}

/* The pool keeps its memory: what is queued for a freed event finds that it
 * is no longer armed. */
struct event *
event_new(struct event_base *base, evutil_socket_t fd, short what,
    event_callback_fn callback, void *arg)
{
	struct event *event = free_events;

	(void)base;
	if (fd != -1 || (what & ~EV_PERSIST) != 0)
		die_bug("only timers are simulated");
	if (event != NULL)
		free_events = event->next_free;
	else
		event = xcalloc(1, sizeof(*event));
	event->process = current;
	event->callback = callback;
	event->arg = arg;
	event->armed = 0;
	return event;
}

int
event_add(struct event *event, const struct timeval *tv)
{
	event->due_mono = machine_mono(event->process->actor.machine) +
	    tv->tv_sec * 1000 + tv->tv_usec / 1000;
	arm(event);
	return 0;
}

int
event_del(struct event *event)
{
	event->armed = 0;
	return 0;
}

void
event_free(struct event *event)
{
	event->armed = 0;
	event->next_free = free_events;
	free_events = event;
}

int
event_pending(const struct event *event, short what, struct timeval *tv)
{
	(void)what;
	(void)tv;
	return event->armed != 0 ? EV_TIMEOUT : 0;
}

int
event_priority_set(struct event *event, int priority)
{
	(void)event;
	(void)priority;
	return 0;
}

/* --- lease/alarm.h ---------------------------------------------------------- */

struct alarm {
	struct alarm *next_free;
	struct process *process;
	void (*on_due)(void *arg);
	void *arg;
	int64_t due_boot;
	uint64_t armed;
};

static struct alarm *free_alarms;

static void
alarm_rings(void *arg, uint64_t armed)
{
	struct alarm *alarm = arg;

	if (alarm->armed != armed)
		return;
	alarm->armed = 0;
	alarm->on_due(alarm->arg);
}

struct alarm *
alarm_new(struct event_base *base, void (*on_due)(void *), void *arg)
{
	struct alarm *alarm = free_alarms;

	(void)base;
	if (alarm != NULL)
		free_alarms = alarm->next_free;
	else
		alarm = xcalloc(1, sizeof(*alarm));
	alarm->process = current;
	alarm->on_due = on_due;
	alarm->arg = arg;
	return alarm;
}

void
alarm_set(struct alarm *alarm, int64_t boot_msecs)
{
	const struct machine *machine = alarm->process->actor.machine;

	alarm->armed = ++armings;
	if (sim.broken == BREAK_MONO)
		boot_msecs += machine->slept;
	actor_at(&alarm->process->actor, machine_time_of_boot(machine, boot_msecs),
	    URGENT_DEADLINE, alarm_rings, alarm, alarm->armed);
}

void
alarm_free(struct alarm **alarm_p)
{
	struct alarm *alarm = *alarm_p;

	if (alarm == NULL)
		return;
	*alarm_p = NULL;
	alarm->armed = 0;
	alarm->next_free = free_alarms;
	free_alarms = alarm;
}

/* --- random numbers --------------------------------------------------------- */

static uint64_t streams[STREAM_COUNT];

static uint32_t
next(enum stream stream)
{
	uint64_t z = streams[stream] += 0x9E3779B97F4A7C15u;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u; /* splitmix64 */
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return (uint32_t)((z ^ (z >> 31)) >> 16);
}

void
random_seed(uint64_t seed)
{
	unsigned i;

	for (i = 0; i < STREAM_COUNT; i++)
		streams[i] = (seed + 1) * 0xD6E8FEB86659FD93u * (i + 1);
}

uint32_t
random_below(enum stream stream, uint32_t n)
{
	return n > 0 ? (uint32_t)((uint64_t)next(stream) * n >> 32) : 0;
}

int64_t
random_between(enum stream stream, int64_t low, int64_t high)
{
	return low + random_below(stream, (uint32_t)(high - low + 1));
}

bool
random_percent(enum stream stream, unsigned percent)
{
	return random_below(stream, 100) < percent;
}

uint32_t
arc4random(void)
{
	return next(FOR_PRODUCT);
}

uint32_t
arc4random_uniform(uint32_t n)
{
	return random_below(FOR_PRODUCT, n);
}

/* --- the beginning ------------------------------------------------------------ */

void
loop_reset(void)
{
	queue.n = 0;
	queue.seq = queue.steps = 0;
	current = NULL;
}
