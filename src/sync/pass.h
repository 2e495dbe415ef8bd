/*
 * pass.h - the steps of a pass, for the pass itself, the bootstrap and the
 * hot child's INBOX.  Private to sync.
 */
#ifndef SYNC_PASS_H
#define SYNC_PASS_H

#include "sync/backfill.h"

/* LIST and what follows from it; session->folders is new afterwards.  The
 * folders in scope (0: none) are asked for their STATUS in the same flight, for
 * pass_folders to use. */
int pass_list(struct session *s, unsigned scope, struct err *err);

/*
 * One folder from look to download, again from the start when a sibling
 * changed it meanwhile.  pass_look is phase one alone; pass_fetch phase two,
 * which selects when need be; pass_backfill phase three.
 */
int pass_look(struct session *s, int64_t folder_id, struct look *look_r,
    struct err *err);
int pass_fetch(struct session *s, struct look *look, struct err *err);
int pass_backfill(struct session *s, struct look *look,
    struct backfill_budget *budget, bool *is_complete_r, struct err *err);

/* The connection ended in the flight: at the first without an answer. */
void pass_note_unanswered(struct session *s, struct folder *const *asked,
    const struct imap_status *status, size_t n);

/* A folder that could not be selected or read: not again for a while. */
int pass_park(struct session *s, struct folder *folder,
    const struct err *failure, struct err *err);

/* Those that a pass would ask for their STATUS, into chosen (room for all);
 * how many. */
size_t pass_choose(struct session *s, unsigned scope, struct folder **chosen);
/* All folders in scope: STATUS, plan, the three phases. */
int pass_folders(struct session *s, unsigned scope,
    struct backfill_budget *budget, struct err *err);

#endif
