/*
 * compare.h - two sorted lists of messages, ours and the server's.  Pure.
 */
#ifndef SYNC_COMPARE_H
#define SYNC_COMPARE_H

#include "base/arena.h"
#include "mail/message.h"

struct comparison {
	struct place *changed; /* known, with other flags on the server */
	size_t n_changed;
	struct place *fresh; /* on the server only */
	size_t n_fresh;
	uint32_t *vanished; /* here only */
	size_t n_vanished;
};

/* By UID; the later of two with the same UID wins. */
size_t places_sort(struct place *places, size_t n);
/* Sorts and drops doubles. */
size_t uids_sort(uint32_t *uids, size_t n);
bool uids_have(const uint32_t *uids, size_t n, uint32_t uid);

/* Both sorted.  A server place without flags is no news of flags (L115). */
void compare_places(struct arena *arena, const struct place *local,
    size_t n_local, const struct place *server, size_t n_server,
    struct comparison *cmp_r);

#endif
