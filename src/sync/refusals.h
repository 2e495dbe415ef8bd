/*
 * refusals.h - folders that a server refused while a pass goes over them.
 * Private to sync.
 *
 * A refusal is the folder's own, which is parked then, when the server does
 * the same for another one after it; otherwise it is the server's or the
 * account's ("authenticated but not connected", L008).  So what is refused is
 * not decided by when, nor by what went well before.
 */
#ifndef SYNC_REFUSALS_H
#define SYNC_REFUSALS_H

#include "sync/state.h"

struct refusals {
	int64_t *folder_ids; /* not decided yet */
	struct refusal {
		struct err failure;
		bool was_open; /* its messages were refused, not SELECT */
	} *list;
	size_t n;
	size_t n_well; /* folders that went well, also those of a proof */
	struct err last;
};

/* Room for so many folders, in the pass arena. */
void refusals_init(struct session *s, struct refusals *r, size_t n_folders);

/* These return -1 for trouble that is the pass's. */
int refusals_add(struct session *s, struct refusals *r, int64_t folder_id,
    const struct err *failure, struct err *err);
/* A folder went well: a good moment to decide about those before it. */
int refusals_went_well(struct session *s, struct refusals *r,
    struct err *err);
/* All were asked.  What cannot be put down to its folder fails the pass. */
int refusals_end(struct session *s, struct refusals *r, struct err *err);

#endif
