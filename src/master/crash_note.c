/*
 * crash_note.c - what a child that died was at.
 *
 * Runs in: master.  Never blocks.
 */
#include "master/crash_note.h"

#include "master/child_end.h"
#include "master/children.h"
#include "master/clerk.h"
#include "master/state.h"

#include <bsd/string.h>

static void
crash_note_log(const struct child *child, const struct slot_note *note,
    const char *how)
{
	char id[UUID_TEXT_SIZE];

	log_error(NULL, "child died kind=%s pid=%d account_id=%s step=%u "
	    "folder_id=%lld uids=%u:%u activity=\"%s\": %s",
	    child_kind_name(child->kind), (int)child->pid,
	    uuid_format(&child->account_id, id), note->step,
	    (long long)note->folder_id, note->uid_from, note->uid_to,
	    child->activity, how);
}

/* The note is the child's: it may only speak of its own account. */
static bool
crash_note_is_valid(const struct child *child, const struct slot_note *note)
{
	return note->step != 0 && !uuid_is_null(&note->account_id) &&
	    (uuid_is_null(&child->account_id) ||
		uuid_is_equal(&note->account_id, &child->account_id));
}

bool
crash_note_report(struct master *m, const struct child *child,
    struct slot_note *note_r)
{
	struct msg_risk risk;
	struct slot_note note;
	char how[160];

	*note_r = (struct slot_note){ .step = 0 };
	if (!child_end_is_death(child))
		return false;
	m->counters.child_deaths++;
	slot_read_note(child->slot, &note);
	child_end_describe(child, how, sizeof(how));
	crash_note_log(child, &note, how);
	if (!crash_note_is_valid(child, &note))
		return false;
	*note_r = note;
	risk = (struct msg_risk){ .account_id = note.account_id,
		.folder_id = note.folder_id, .step = note.step,
		.uid_from = note.uid_from, .uid_to = note.uid_to };
	strlcpy(risk.how, how, sizeof(risk.how));
	clerk_ask(m->clerk, MSG_RISK, &risk, sizeof(risk), NULL, NULL);
	return m->is_postgres_up;
}
