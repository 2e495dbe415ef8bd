/*
 * events.c - what a commit did, told to the application.
 *
 * Runs in: whoever syncs, after commit only.  Events are hints: the tables
 * are the truth, so nothing here fails.
 */
#include "sync/events.h"

static void
event_init(struct session *s, struct msg_event *ev, enum event_name name,
    int64_t folder_id)
{
	memset(ev, 0, sizeof(*ev));
	ev->event = name;
	ev->account_id = s->fence.account_id;
	if (s->account != NULL)
		ev->user_id = s->account->user_id;
	ev->mailbox_id = folder_id;
}

static void
events_emit(struct session *s, const struct msg_event *ev)
{
	s->hooks->emit(s->hooks->arg, ev);
}

static void
emit_ids(struct session *s, enum event_name name, int64_t folder_id,
    const struct changed_ids *changed)
{
	struct msg_event ev;
	size_t from, n;

	for (from = 0; from < changed->n; from += n) {
		n = changed->n - from;
		if (n > MSG_IDS_MAX)
			n = MSG_IDS_MAX;
		event_init(s, &ev, name, folder_id);
		memcpy(ev.ids, changed->ids + from, n * sizeof(ev.ids[0]));
		ev.n_ids = ev.count = (uint32_t)n;
		events_emit(s, &ev);
	}
}

void
events_commit(struct session *s, int64_t folder_id,
    const struct commit_result *result)
{
	emit_ids(s, EVENT_MESSAGE_NEW, folder_id, &result->created);
	emit_ids(s, EVENT_MESSAGE_UPDATED, folder_id, &result->updated);
	emit_ids(s, EVENT_MESSAGE_DELETED, folder_id, &result->deleted);
	emit_ids(s, EVENT_THREAD, 0, &result->threads);
	s->sync->totals.created += (uint32_t)result->created.n;
	s->sync->totals.updated += (uint32_t)result->updated.n;
	s->sync->totals.deleted += (uint32_t)result->deleted.n;
	if (result->newest_mail_secs > s->sync->totals.last_mail_secs)
		s->sync->totals.last_mail_secs = result->newest_mail_secs;
}

void
events_quarantine(struct session *s, const struct risk *risk, const char *how)
{
	struct msg_event ev;

	event_init(s, &ev, EVENT_QUARANTINE, risk->folder_id);
	ev.done = risk->uid_from;
	snprintf(ev.name, sizeof(ev.name), "%s", how[0] == '\0' ? "cleared" :
	    risk->is_parked ? "parked" : "noted");
	snprintf(ev.reason, sizeof(ev.reason), "%s", how);
	events_emit(s, &ev);
}

void
events_folder(struct session *s, int64_t folder_id, const char *change)
{
	struct msg_event ev;

	event_init(s, &ev, EVENT_MAILBOX, folder_id);
	snprintf(ev.name, sizeof(ev.name), "%s", change);
	events_emit(s, &ev);
}

void
events_progress(struct session *s, const struct folder *folder)
{
	struct msg_event ev;

	if (!s->sync->progress.is_on)
		return;
	event_init(s, &ev, EVENT_PROGRESS, folder->id);
	snprintf(ev.name, sizeof(ev.name), "%s", folder->path);
	ev.done = s->sync->progress.done;
	ev.total = s->sync->progress.total;
	events_emit(s, &ev);
}
