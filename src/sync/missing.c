/*
 * missing.c - which of our messages a server no longer has, found with a few
 * questions.
 *
 * Runs in: whoever syncs.  Pure.
 *
 * The server numbers its messages by UID without gaps, and we know what numbers
 * ours would have.  Where the UID of a number is told, what is missing before it
 * is the difference of the two numbers; between two such points with the same
 * difference nothing is missing.  So the stretches with a difference are cut
 * into pieces until nothing of the server's is left in them.  One message among
 * 20,000 takes four flights of sixteen questions, on any server.
 */
#include "sync/missing.h"

#include "base/banned.h"

#define CUTS 16 /* questions about one stretch */

/* Between two messages that both have: open on both sides. */
struct stretch {
	uint32_t seq_lo, seq_hi;   /* the server's numbers */
	uint32_t rank_lo, rank_hi; /* ours */
	struct stretch *next;	   /* the one above */
};

struct missing {
	struct arena *arena;
	const struct uid_range *ranges;
	size_t n_ranges;
	struct stretch *first; /* those with a difference, ascending */
	uint32_t *uids;
	size_t n, n_known; /* room; found */
};

static uint32_t
count_ours(const struct stretch *s)
{
	return s->rank_hi - s->rank_lo - 1;
}

static uint32_t
count_theirs(const struct stretch *s)
{
	return s->seq_hi - s->seq_lo - 1;
}

/* The range that holds the number, or n_ranges. */
static size_t
find_rank(const struct missing *m, uint32_t rank)
{
	size_t lo = 0, hi = m->n_ranges, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (m->ranges[mid].before + (m->ranges[mid].last -
			m->ranges[mid].first) + 1 < rank)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Ours, counted from 1; 0: it is not ours. */
static uint32_t
rank_of(const struct missing *m, uint32_t uid)
{
	size_t lo = 0, hi = m->n_ranges, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (m->ranges[mid].last < uid)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == m->n_ranges || uid < m->ranges[lo].first)
		return 0;
	return m->ranges[lo].before + (uid - m->ranges[lo].first) + 1;
}

struct missing *
missing_new(struct arena *arena, const struct uid_range *ranges,
    size_t n_ranges, uint32_t n_server)
{
	struct missing *m = ARENA_NEW(arena, struct missing);
	const struct uid_range *last = n_ranges > 0 ? &ranges[n_ranges - 1] :
	    NULL;
	uint32_t ours = last == NULL ? 0 :
	    last->before + (last->last - last->first) + 1;

	m->arena = arena;
	m->ranges = ranges;
	m->n_ranges = n_ranges;
	if (ours <= n_server)
		return m;
	m->n = ours - n_server;
	m->uids = ARENA_ARRAY(arena, uint32_t, m->n);
	m->first = ARENA_NEW(arena, struct stretch);
	m->first->seq_hi = n_server + 1;
	m->first->rank_hi = ours + 1;
	return m;
}

/* Nothing of the server's is between: all of ours there are missing. */
static void
missing_take(struct missing *m, const struct stretch *s)
{
	uint32_t rank;
	size_t i;

	for (rank = s->rank_lo + 1; rank < s->rank_hi; rank++) {
		i = find_rank(m, rank);
		m->uids[m->n_known++] = m->ranges[i].first +
		    (rank - m->ranges[i].before - 1);
	}
}

static void
missing_take_bare(struct missing *m)
{
	struct stretch **at = &m->first, *s;

	while ((s = *at) != NULL)
		if (count_theirs(s) == 0) {
			missing_take(m, s);
			*at = s->next;
		} else
			at = &s->next;
}

size_t
missing_ask(struct missing *m, uint32_t *seqs)
{
	const struct stretch *s;
	uint32_t cuts, i;
	size_t n = 0;

	missing_take_bare(m);
	for (s = m->first; s != NULL && n < MISSING_FLIGHT; s = s->next) {
		cuts = count_theirs(s) < CUTS ? count_theirs(s) : CUTS;
		if (cuts > MISSING_FLIGHT - n)
			cuts = (uint32_t)(MISSING_FLIGHT - n);
		for (i = 1; i <= cuts; i++)
			seqs[n++] = s->seq_lo + (uint32_t)((uint64_t)i *
			    (count_theirs(s) + 1) / (cuts + 1));
	}
	return n;
}

/* Cuts a stretch at a message that both have; what is whole drops out. */
static int
missing_cut(struct missing *m, struct stretch **at, uint32_t seq,
    uint32_t rank)
{
	struct stretch *s = *at, *upper;

	if (rank <= s->rank_lo || rank >= s->rank_hi ||
	    rank - s->rank_lo < seq - s->seq_lo ||
	    s->rank_hi - rank < s->seq_hi - seq)
		return -1;
	upper = ARENA_NEW(m->arena, struct stretch);
	*upper = *s;
	upper->seq_lo = seq;
	upper->rank_lo = rank;
	s->seq_hi = seq;
	s->rank_hi = rank;
	s->next = count_ours(upper) > count_theirs(upper) ? upper :
	    upper->next;
	if (count_ours(s) == count_theirs(s))
		*at = s->next;
	return 0;
}

int
missing_tell(struct missing *m, const uint32_t *seqs, const uint32_t *uids,
    size_t n)
{
	struct stretch **at = &m->first;
	uint32_t rank;
	size_t i;

	for (i = 0; i < n; i++) {
		while (*at != NULL && (*at)->seq_hi <= seqs[i])
			at = &(*at)->next;
		rank = uids[i] == 0 ? 0 : rank_of(m, uids[i]);
		if (rank == 0)
			return -1;
		/* Whole by now: an answer before it said so. */
		if (*at == NULL || seqs[i] <= (*at)->seq_lo)
			continue;
		if (missing_cut(m, at, seqs[i], rank) == -1)
			return -1;
	}
	return 0;
}

static int
missing_by_uid(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

const uint32_t *
missing_uids(const struct missing *m, size_t *n_r)
{
	if (m->n_known > 1)
		qsort(m->uids, m->n_known, sizeof(*m->uids), missing_by_uid);
	*n_r = m->n_known;
	return m->uids;
}
