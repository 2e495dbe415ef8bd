/*
 * crash_note.h - what a child that died was at.
 *
 * Runs in: master.  Never blocks.
 */
#ifndef MASTER_CRASH_NOTE_H
#define MASTER_CRASH_NOTE_H

#include "proc/slots.h"

#include <stdbool.h>

struct child;
struct master;

/*
 * To be called for each child that is gone.  If it died: logs and counts that,
 * and lets the clerk count the step it noted in its slot as an attempt
 * (R-SYNC-9).  note_r->step is 0 when there is no step to blame.  true: what
 * killed it is known by its name, and will be gone around.
 */
bool crash_note_report(struct master *m, const struct child *child,
    struct slot_note *note_r);

#endif
