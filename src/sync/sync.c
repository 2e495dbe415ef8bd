/*
 * sync.c - a session that syncs: its beginning and end.
 *
 * Runs in: whoever syncs.
 */
#include "sync/state.h"

#include "base/xmem.h"

struct session *
sync_open(const struct conf *conf, const struct account_hooks *hooks,
    const struct fence *fence)
{
	struct session *s = session_new(conf, hooks, fence);

	s->sync = xcalloc(1, sizeof(*s->sync));
	return s;
}

void
sync_close(struct session **s)
{
	struct sync_state *state;

	if (*s == NULL)
		return;
	state = (*s)->sync;
	session_free(s);
	free(state);
}

void
sync_totals_take(struct session *s, struct sync_totals *totals_r)
{
	struct sync_totals *totals = &s->sync->totals;

	session_count(s);
	totals->round_trips = s->round_trips;
	totals->is_slowed = s->is_slowed;
	*totals_r = *totals;
	memset(totals, 0, sizeof(*totals));
	s->round_trips = 0;
	s->is_slowed = false;
}

int
sync_scan_refused(struct session *s, struct err *err)
{
	if (err->kind != ERR_SERVER)
		return -1;
	s->sync->is_scan_refused = true;
	err->kind = ERR_STALE;
	return -1;
}

int
sync_connect(struct session *s, struct err *err)
{
	unsigned before = s->n_connections;

	if (session_connect(s, err) == -1)
		return -1;
	if (s->n_connections == before)
		return 0;
	s->sync->probed = SHOWS_NONE;
	s->sync->has_probed_body = false;
	s->sync->refused_probes = 0;
	return 0;
}
