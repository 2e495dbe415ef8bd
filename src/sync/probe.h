/*
 * probe.h - does the server do for another one what it does not do for this
 * one?  Private to sync.
 *
 * Trouble is put down to a folder or message only with such a proof; without
 * one it is the server's.
 */
#ifndef SYNC_PROBE_H
#define SYNC_PROBE_H

#include "sync/state.h"

/* Folders that were refused, too, and so prove nothing. */
struct probe_except {
	const int64_t *ids;
	size_t n;
};

/*
 * Another folder is asked for what a pass asks.  *is_proved_r: it was opened,
 * or, for a folder that was open when it was refused, one of its messages was
 * shown.  Where no other folder is known to have messages, an open one does
 * for the last, if it is the only one refused.  -1: the connection ended, at
 * the folder of the note.
 */
int probe_folder(struct session *s, const struct probe_except *except,
    bool was_open, bool is_last, bool *is_proved_r, struct err *err);

/* Before s->sync->trial, a folder's; the answers are for this connection. */
int probe_for_trial(struct session *s, struct err *err);
/* What the trial has come to now, a loss or a refusal, is the folder's own. */
bool probe_proves_folder(const struct session *s, int64_t folder_id);
/* The same of s->sync->trial, whatever it is. */
bool probe_proves(const struct session *s);

/* Before s->sync->trial, a message's, in its folder, which is selected.
 * *is_well_r false: nothing can be said of it now. */
int probe_body(struct session *s, int64_t folder_id, bool *is_well_r,
    struct err *err);

#endif
