/*
 * slots.h - one shared anonymous page range, a slot per child.
 *
 * Two halves with one writer each.  The master writes the deadline of the
 * account's lease (CLOCK_BOOTTIME); the child reads it before each step and
 * from a timer, and dies by itself when it has passed, even in the middle of
 * a blocking call with the master stopped (R-LEASE-5).  The child writes what
 * risky step it is about to take; when it dies of it, the master reads the
 * note and has the clerk count the attempt (R-SYNC-9).  What a child wrote is
 * untrusted: it is copied and range-checked.
 */
#ifndef PROC_SLOTS_H
#define PROC_SLOTS_H

#include "base/err.h"
#include "base/uuid.h"

#define SLOT_NONE UINT32_MAX
#define DEADLINE_NONE INT64_MAX /* no lease: jobs before a claim, clerk */

struct slot_note {
	struct uuid account_id;
	int64_t folder_id;
	uint32_t step; /* enum risk_step; 0: none */
	uint32_t uid_from, uid_to;
};

/* master, before the first fork */
void slots_init(unsigned count);
uint32_t slot_take(void); /* SLOT_NONE when all are taken */
void slot_give_back(uint32_t slot);
void slot_set_deadline(uint32_t slot, int64_t deadline_boot_msecs);
void slot_read_note(uint32_t slot, struct slot_note *note_r);
void slot_clear_note(uint32_t slot);

/* child; spawn() calls the first: deadlines become read-only */
void slots_enter_child(void);
int64_t slot_deadline(uint32_t slot);
void slot_write_note(uint32_t slot, const struct slot_note *note);
/* SIGALRM is its signal: EINTR is normal for poll(2) and the like.
 * Arms timer and handler: _exit(EXIT_LEASE_LOST) soon after the deadline. */
void slot_arm(uint32_t slot);
void slot_disarm(void);

#endif
