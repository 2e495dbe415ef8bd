/*
 * backfill.h - the older messages of a folder, newest first.  Private to sync.
 */
#ifndef SYNC_BACKFILL_H
#define SYNC_BACKFILL_H

#include "sync/look.h"

/* How much at once; the next call goes on where this one stopped. */
struct backfill_budget {
	int64_t messages; /* still to be downloaded; counted down */
	int64_t deadline_mono_msecs;
};

/* The folder is the selected one.  *is_complete_r: its cursor says so. */
int backfill_folder(struct session *s, struct folder *folder,
    uint32_t exists, struct backfill_budget *budget, bool *is_complete_r,
    struct err *err);

/*
 * Downloads the new messages of a look; where messages of this account have
 * lost their places (moved, renamed, UIDVALIDITY), it looks by Message-ID,
 * size and date first, so that they are not downloaded again (R-SYNC-6).
 */
int backfill_fresh(struct session *s, struct look *look, struct err *err);

#endif
