/*
 * refusals.c - folders that a server refused while a pass goes over them.
 *
 * Runs in: whoever syncs.  Blocks.
 */
#include "sync/refusals.h"

#include "sync/pass.h"
#include "sync/probe.h"

void
refusals_init(struct session *s, struct refusals *r, size_t n_folders)
{
	memset(r, 0, sizeof(*r));
	r->folder_ids = ARENA_ARRAY(s->pass, int64_t, n_folders + 1);
	r->list = ARENA_ARRAY(s->pass, struct refusal, n_folders + 1);
}

static int
refusals_park(struct session *s, struct refusals *r, size_t i, struct err *err)
{
	struct folder *folder = session_folder(s, r->folder_ids[i]);
	struct err failure = r->list[i].failure;

	r->n--;
	r->folder_ids[i] = r->folder_ids[r->n];
	r->list[i] = r->list[r->n];
	return folder == NULL ? 0 : pass_park(s, folder, &failure, err);
}

/* At once, for nobody knows whether the connection lasts. */
static int
refusals_decide(
    struct session *s, struct refusals *r, bool is_last, struct err *err)
{
	struct probe_except except = { .ids = r->folder_ids };
	bool is_proved;
	size_t i = r->n;

	while (i-- > 0) {
		except.n = r->n;
		if (probe_folder(s, &except, r->list[i].was_open, is_last,
			&is_proved, err) == -1)
			return -1;
		if (!is_proved)
			continue;
		r->n_well++;
		if (refusals_park(s, r, i, err) == -1)
			return -1;
	}
	return 0;
}

int
refusals_add(struct session *s, struct refusals *r, int64_t folder_id,
    const struct err *failure, struct err *err)
{
	r->last = *failure;
	if (failure->kind != ERR_SERVER && failure->kind != ERR_PERMANENT)
		return 0;
	/* What was well before it asked us to wait proves nothing. */
	if (imap_is_busy(s->imap))
		s->sync->probed = SHOWS_NONE;
	r->folder_ids[r->n] = folder_id;
	r->list[r->n++] = (struct refusal){ *failure,
		s->selected_id == folder_id };
	return refusals_decide(s, r, false, err);
}

int
refusals_went_well(struct session *s, struct refusals *r, struct err *err)
{
	r->n_well++;
	s->sync->refused_probes = 0;
	return refusals_decide(s, r, false, err);
}

int
refusals_end(struct session *s, struct refusals *r, struct err *err)
{
	if (refusals_decide(s, r, true, err) == -1)
		return -1;
	if (r->n == 0 && (r->n_well > 0 || r->last.kind == ERR_NONE))
		return 0;
	*err = r->n > 0 ? r->list[0].failure : r->last;
	return -1;
}
