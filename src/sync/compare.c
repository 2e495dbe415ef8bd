/*
 * compare.c - two sorted lists of messages, ours and the server's.
 *
 * Runs in: whoever syncs.  Pure.
 */
#include "sync/compare.h"

/* Of two with the same UID the one with the newer mod-sequence comes last. */
static int
by_uid(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->uid != y->uid)
		return x->uid < y->uid ? -1 : 1;
	return x->modseq < y->modseq ? -1 : x->modseq > y->modseq;
}

static bool
is_sorted(const struct place *places, size_t n)
{
	size_t i;

	for (i = 1; i < n; i++)
		if (places[i - 1].uid >= places[i].uid)
			return false;
	return true;
}

/* Servers answer in order but for the odd one (Domino), and a flag change in
 * mid-answer repeats a UID: the last word counts. */
size_t
places_sort(struct place *places, size_t n)
{
	size_t i, out = 0;

	if (is_sorted(places, n))
		return n;
	qsort(places, n, sizeof(*places), by_uid);
	for (i = 0; i < n; i++) {
		if (out > 0 && places[out - 1].uid == places[i].uid)
			out--;
		places[out++] = places[i];
	}
	return out;
}

static int
compare_by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

size_t
uids_sort(uint32_t *uids, size_t n)
{
	size_t i, out = 0;

	if (n > 1)
		qsort(uids, n, sizeof(*uids), compare_by_number);
	for (i = 0; i < n; i++)
		if (out == 0 || uids[out - 1] != uids[i])
			uids[out++] = uids[i];
	return out;
}

bool
uids_have(const uint32_t *uids, size_t n, uint32_t uid)
{
	return n > 0 &&
	       bsearch(&uid, uids, n, sizeof(*uids), compare_by_number) != NULL;
}

static bool
compare_is_news(const struct place *local, const struct place *server)
{
	if (!server->has_flags)
		return false;
	return local->flags.bits != server->flags.bits ||
	    strcmp(local->flags.keywords, server->flags.keywords) != 0;
}

void
compare_places(struct arena *arena, const struct place *local, size_t n_local,
    const struct place *server, size_t n_server, struct comparison *cmp_r)
{
	size_t l = 0, r = 0;

	memset(cmp_r, 0, sizeof(*cmp_r));
	cmp_r->changed = ARENA_ARRAY(arena, struct place, n_server);
	cmp_r->fresh = ARENA_ARRAY(arena, struct place, n_server);
	cmp_r->vanished = ARENA_ARRAY(arena, uint32_t, n_local);
	while (l < n_local || r < n_server) {
		if (r == n_server ||
		    (l < n_local && local[l].uid < server[r].uid)) {
			cmp_r->vanished[cmp_r->n_vanished++] = local[l++].uid;
		} else if (l == n_local || server[r].uid < local[l].uid) {
			cmp_r->fresh[cmp_r->n_fresh++] = server[r++];
		} else {
			if (compare_is_news(&local[l], &server[r]))
				cmp_r->changed[cmp_r->n_changed++] = server[r];
			l++;
			r++;
		}
	}
}
