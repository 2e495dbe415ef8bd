/*
 * look.h - phase one of a pass: what is new in one folder; flags and vanished
 * messages applied.  Private to sync.
 */
#ifndef SYNC_LOOK_H
#define SYNC_LOOK_H

#include "sync/plan.h"
#include "sync/state.h"

struct look {
	struct folder *folder;
	enum plan_action action;
	struct imap_selected selected;
	struct place *fresh; /* to be downloaded; sorted, lives in the pass */
	size_t n_fresh;
	uint32_t seen_uidnext; /* above all that was shown; 0: nothing was */
	struct cursor base;   /* committed by the look */
	struct cursor target; /* when the fresh ones are stored */
	bool needs_backfill;
	bool is_short; /* see struct plan */
	const char *doubt; /* see struct plan */
	bool is_quiet; /* no news can have come with the answer to a
			* command after SELECT: there was none, or nothing
			* was found and nothing disturbed the comparison */
};

/*
 * Selects the folder, compares, and commits flags, vanished messages and as
 * much of the cursor as that stands for; starts anew (first look, other
 * UIDVALIDITY).  ERR_SERVER: it cannot be selected.  ERR_STALE: again.
 */
int look_at(struct session *s, struct folder *folder, struct look *look_r,
    struct err *err);

/* For delta.c: the server's UIDNEXT, 0 where it is not told or not believed;
 * its mod-sequence, 0 where CONDSTORE is not to be used; an end of trust. */
uint32_t look_uidnext(const struct look *look);
uint64_t look_modseq(const struct session *s, const struct look *look);
int look_distrust(struct session *s, struct folder *folder,
    enum distrust what, const char *reason, struct err *err);

#endif
