/*
 * risks.h - what is in quarantine, while an account is worked on.
 *
 * Private to sync.  Reads session->risks; R-SYNC-9.
 */
#ifndef SYNC_RISKS_H
#define SYNC_RISKS_H

#include "sync/state.h"

/* The folder is left out of ordinary work (its messages may be, too). */
bool risks_has_folder(const struct session *s, int64_t folder_id);
/* So is this message. */
bool risks_has_message(const struct session *s, int64_t folder_id,
    uint32_t uid);
/* It is one of a range of which one made trouble: to be stored alone. */
bool risks_single(const struct session *s, int64_t folder_id, uint32_t uid);
/* To be stored without parsing; the reason, or NULL. */
const char *risks_unparsed(const struct session *s, int64_t folder_id,
    uint32_t uid);
/* Time to try it again. */
bool risk_is_due(const struct risk *r, int64_t now_secs);

/*
 * One more failed attempt, logged and told as an event when that parks it.
 * Unproved: what ended may not be its fault, so that it is noted and never
 * parked.  The risk is what the row says afterwards.
 */
int risks_count(struct session *s, struct risk *risk, const char *how,
    bool is_proved, struct err *err);
/* The server shows a message but does not deliver it. */
int risks_not_delivered(struct session *s, int64_t folder_id, uint32_t uid,
    const char *how, struct err *err);
/* The server refuses to open it: parked at the first time. */
int risks_refused_folder(struct session *s, struct risk *risk,
    const char *how, struct err *err);
/* Ranges whose messages are all stored now (sorted). */
int risks_clear_ranges(struct session *s, int64_t folder_id, uint32_t from,
    uint32_t to, struct err *err);

#endif
