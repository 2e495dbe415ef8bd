/*
 * slots.c - deadlines the master moves, notes the children leave.
 *
 * Runs in: master and children.  Never blocks.
 *
 * Two shared mappings, because they have different writers: a child maps the
 * deadlines read-only for itself.  Which slots are taken is the master's
 * private knowledge.  The deadline is a single aligned word, read and written
 * in one piece; a note becomes valid with its last store, `step`, and is read
 * after its writer is dead.
 */
#include "config.h"

#include "proc/slots.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/xmem.h"
#include "proc/kinds.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* An armed child without a deadline looks again after this long. */
#define RECHECK_MSECS 5000

static struct {
	_Atomic int64_t *deadlines;
	struct slot_note *notes;
	/* master only: given back; ever taken, lowest first, so that the pages
	 * of the others are never touched; all */
	uint32_t *free_slots;
	uint32_t n_free, n_ever, count;
} slots;

static struct {
	timer_t timer;
	bool has_timer;
	/* read by the handler */
	volatile sig_atomic_t is_armed;
	volatile uint32_t slot;
} armed;

_Static_assert(sizeof(_Atomic int64_t) == sizeof(int64_t),
    "a deadline is one word");

static void *
map_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		xmem_fail(size);
	return p;
}

void
slots_init(unsigned count)
{
	slots.count = count;
	slots.deadlines = map_shared(count * sizeof(slots.deadlines[0]));
	slots.notes = map_shared(count * sizeof(slots.notes[0]));
	slots.free_slots = xcalloc(count, sizeof(slots.free_slots[0]));
	slots.n_free = slots.n_ever = 0;
}

void
slots_enter_child(void)
{
	if (slots.deadlines != NULL)
		mprotect((void *)slots.deadlines,
		    slots.count * sizeof(slots.deadlines[0]), PROT_READ);
}

static void
check_slot(uint32_t slot)
{
	if (slot >= slots.count)
		die_bug("slot %u of %u", slot, slots.count);
}

uint32_t
slot_take(void)
{
	uint32_t slot;

	if (slots.n_free > 0)
		slot = slots.free_slots[--slots.n_free];
	else if (slots.n_ever < slots.count)
		slot = slots.n_ever++;
	else
		return SLOT_NONE;
	slot_set_deadline(slot, DEADLINE_NONE);
	slot_clear_note(slot);
	return slot;
}

void
slot_give_back(uint32_t slot)
{
	check_slot(slot);
	if (slots.n_free == slots.n_ever)
		die_bug("slot %u given back twice", slot);
	slots.free_slots[slots.n_free++] = slot;
}

void
slot_set_deadline(uint32_t slot, int64_t deadline_boot_msecs)
{
	check_slot(slot);
	atomic_store(&slots.deadlines[slot], deadline_boot_msecs);
}

int64_t
slot_deadline(uint32_t slot)
{
	check_slot(slot);
	return atomic_load(&slots.deadlines[slot]);
}

void
slot_write_note(uint32_t slot, const struct slot_note *note)
{
	struct slot_note *n;

	check_slot(slot);
	n = &slots.notes[slot];
	n->step = 0;
	atomic_signal_fence(memory_order_seq_cst);
	n->account_id = note->account_id;
	n->folder_id = note->folder_id;
	n->uid_from = note->uid_from;
	n->uid_to = note->uid_to;
	atomic_signal_fence(memory_order_seq_cst);
	n->step = note->step;
}

void
slot_read_note(uint32_t slot, struct slot_note *note_r)
{
	check_slot(slot);
	*note_r = slots.notes[slot];
	if (note_r->folder_id < 0 || note_r->uid_from > note_r->uid_to)
		*note_r = (struct slot_note){ .step = 0 };
}

void
slot_clear_note(uint32_t slot)
{
	check_slot(slot);
	slots.notes[slot] = (struct slot_note){ .step = 0 };
}

/* --- the child's timer --------------------------------------------------------- */

/* Async-signal-safe.  An absolute time in the past fires at once. */
static void
set_timer(int64_t boot_msecs)
{
	struct itimerspec when = { .it_value = {
		.tv_sec = boot_msecs / 1000,
		.tv_nsec = boot_msecs % 1000 * 1000000 } };

	if (when.it_value.tv_sec <= 0)
		when.it_value = (struct timespec){ .tv_nsec = 1 };
	timer_settime(armed.timer, TIMER_ABSTIME, &when, NULL);
}

static void
look_at_deadline(void)
{
	int64_t deadline = atomic_load(&slots.deadlines[armed.slot]);
	int64_t now = clock_boot_msecs();

	if (now >= deadline)
		_exit(EXIT_LEASE_LOST);
	set_timer(deadline == DEADLINE_NONE ? now + RECHECK_MSECS : deadline);
}

/* The master has moved the deadline, or it is time to go. */
static void
on_alarm(int sig)
{
	int saved_errno = errno;

	(void)sig;
	if (armed.is_armed)
		look_at_deadline();
	errno = saved_errno;
}

static void
create_timer(void)
{
	struct sigaction action = { .sa_handler = on_alarm,
		.sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGALRM };

	sigemptyset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	/* no work under a lease without its guard */
	if (timer_create(CLOCK_BOOTTIME, &event, &armed.timer) == -1) {
		log_error(NULL, "no deadline timer: %s", strerror(errno));
		_exit(EXIT_RETRY);
	}
	armed.has_timer = true;
}

void
slot_arm(uint32_t slot)
{
	check_slot(slot);
	if (!armed.has_timer)
		create_timer();
	armed.is_armed = 0;
	armed.slot = slot;
	armed.is_armed = 1;
	look_at_deadline();
}

void
slot_disarm(void)
{
	static const struct itimerspec never;

	armed.is_armed = 0;
	if (armed.has_timer)
		timer_settime(armed.timer, 0, &never, NULL);
}
