/*
 * events.h - what a commit did, told to the application.  Private to sync.
 */
#ifndef SYNC_EVENTS_H
#define SYNC_EVENTS_H

#include "sync/state.h"

/* message.new, .updated, .deleted, at most 100 ids an event (R-MSG-5); adds
 * to the totals. */
void events_commit(struct session *s, int64_t folder_id,
    const struct commit_result *result);
/* quarantine.changed: noted, parked; cleared when `how` is "" */
void events_quarantine(struct session *s, const struct risk *risk,
    const char *how);
/* mailbox.changed: created, renamed, updated, deleted, remapped */
void events_folder(struct session *s, int64_t folder_id, const char *change);
void events_progress(struct session *s, const struct folder *folder);

#endif
