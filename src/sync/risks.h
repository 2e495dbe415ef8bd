/*
 * risks.h - what killed a child before, and what to do about it.
 *
 * Private to sync.  Reads session->risks; R-SYNC-9.
 */
#ifndef SYNC_RISKS_H
#define SYNC_RISKS_H

#include "sync/session.h"

/* The folder itself is quarantined. */
bool risks_park_folder(const struct session *s, int64_t folder_id);
/* Not to be asked for at all. */
bool risks_leave_out(const struct session *s, int64_t folder_id,
    uint32_t uid);
/* To be stored without parsing; the reason, or NULL. */
const char *risks_unparsed(const struct session *s, int64_t folder_id,
    uint32_t uid);
/* To be fetched in a command of its own: it is one of a range that killed. */
bool risks_single(const struct session *s, int64_t folder_id, uint32_t uid);
/* UIDs that did not come before and are worth another try; sorted. */
void risks_retry(const struct session *s, int64_t folder_id,
    struct arena *arena, uint32_t **uids_r, size_t *n_r);

/* The server shows a message but does not deliver it: counts an attempt. */
int risks_not_delivered(struct session *s, int64_t folder_id, uint32_t uid,
    struct err *err);
/* Everything known about these UIDs went well (sorted, and stored). */
int risks_clear(struct session *s, int64_t folder_id, const uint32_t *uids,
    size_t n, struct err *err);

#endif
