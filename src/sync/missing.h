/*
 * missing.h - which of our messages a server no longer has, found with a few
 * questions.  Pure.
 */
#ifndef SYNC_MISSING_H
#define SYNC_MISSING_H

#include "base/arena.h"
#include "store/store.h"

/* More than so many questions at once are not asked. */
#define MISSING_FLIGHT 48

struct missing;

/*
 * Our UIDs, and how many of the server's messages are among them; the server's
 * are numbered from 1 in the order of their UIDs and all of them are ours.
 */
struct missing *missing_new(struct arena *arena,
    const struct uid_range *ranges, size_t n_ranges, uint32_t n_server);
/* Sequence numbers whose UIDs are to be told, ascending, at most
 * MISSING_FLIGHT; 0: it is known now. */
size_t missing_ask(struct missing *m, uint32_t *seqs);
/* -1: that cannot be; something else than what we have is there. */
int missing_tell(struct missing *m, const uint32_t *seqs,
    const uint32_t *uids, size_t n);
/* Ascending. */
const uint32_t *missing_uids(const struct missing *m, size_t *n_r);

#endif
