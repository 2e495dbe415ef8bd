/*
 * dump.c - SIGUSR2: all that the master knows, a line for each thing.
 *
 * Runs in: master.  Never blocks.
 */
#include "master/dump.h"

#include "master/children.h"
#include "master/control.h"
#include "master/state.h"

#include <stdlib.h>

void
dump_log(struct master *m)
{
	char *status = control_answer(m, "{\"cmd\":\"status\"}", 16);
	struct child *child;
	char id[UUID_TEXT_SIZE];

	log_info(NULL, "dump: %s", status);
	free(status);
	for (child = children_first(m->children); child != NULL;
	    child = child_next(child))
		log_info(NULL, "dump: child pid=%d kind=%s account_id=%s "
		    "state=%s generation=%u activity=\"%s\"", (int)child->pid,
		    child_kind_name(child->kind),
		    uuid_format(&child->account_id, id),
		    child_state_name(child->state), child->generation,
		    child->activity);
	m->role->dump(m);
}
