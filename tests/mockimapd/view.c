/*
 * view.c - what a session was told of its folder, and telling it the news.
 *
 * Runs in: mockimapd.  Never blocks.
 *
 * A session keeps the UIDs it was told, so that sequence numbers are those the
 * client knows, whatever others do to the folder meanwhile.  The news are the
 * difference between that list and the folder.
 */
#include "config.h"

#include "session.h"

#include "base/xmem.h"

#define FROZEN 7
#define HUGE_STEP (UINT64_C(1) << 60)

uint64_t
session_modseq(const struct session *s, uint64_t modseq)
{
	const struct fault *lie = s->account == NULL ? NULL :
	    fault_lie(s->world->faults, FAULT_MODSEQ, s->account->login);

	if (lie == NULL)
		return modseq;
	switch (lie->text[0]) {
	case 'f':
		return FROZEN;
	case 'h':
		return HUGE_STEP + modseq;
	default: /* zero, none */
		return 0;
	}
}

uint64_t
session_lie(const struct session *s, enum fault_kind kind, uint64_t truth)
{
	const struct fault *lie = s->account == NULL ? NULL :
	    fault_lie(s->world->faults, kind, s->account->login);

	return lie == NULL ? truth : (uint64_t)lie->bytes;
}

static void
view_add(struct session *s, uint32_t uid)
{
	GROW(s->view, s->n_view, s->cap_view);
	s->view[s->n_view++] = uid;
}

void
session_select(struct session *s, struct folder *folder, bool is_read_only)
{
	s->folder = folder;
	s->state = STATE_SELECTED;
	s->is_read_only = is_read_only;
	LIST_INSERT_HEAD(&folder->sessions, s, folder_entry);
	s->n_view = 0;
	for (size_t i = 0; i < folder->n; i++)
		view_add(s, folder->messages[i].uid);
	s->told_modseq = folder->modseq;
}

void
session_unselect(struct session *s)
{
	if (s->folder == NULL)
		return;
	LIST_REMOVE(s, folder_entry);
	s->folder = NULL;
	s->state = STATE_LOGGED_IN;
	free(s->view);
	s->view = NULL;
	s->n_view = s->cap_view = 0;
}

size_t
session_find(const struct session *s, uint32_t uid)
{
	size_t low = 0, high = s->n_view;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->view[middle] < uid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t
session_seq(const struct session *s, uint32_t uid)
{
	size_t at = session_find(s, uid);

	return at < s->n_view && s->view[at] == uid ? (uint32_t)at + 1 : 0;
}

/* Consecutive UIDs as "a:b,c"; `out` gets a comma before all but the first. */
static void
add_run(struct buf *out, uint32_t from, uint32_t to)
{
	if (out->len > 0)
		buf_addc(out, ',');
	if (from == to)
		buf_addf(out, "%u", from);
	else
		buf_addf(out, "%u:%u", from, to);
}

void
session_say_vanished(struct session *s, const char *word,
    const uint32_t *uids, size_t n)
{
	struct buf set = BUF_INIT;

	for (size_t i = 0, begin = 0; i < n; i++)
		if (i + 1 == n || uids[i + 1] != uids[i] + 1) {
			add_run(&set, uids[begin], uids[i]);
			begin = i + 1;
		}
	if (n > 0)
		session_say(s, "* VANISHED%s %s", word, buf_str(&set));
	buf_release(&set);
}

static void
report_gone(struct session *s)
{
	const struct folder *folder = s->folder;
	size_t kept = 0, at = 0, n = 0, cap = 0;
	uint32_t *gone = NULL;

	for (size_t i = 0; i < s->n_view; i++) {
		uint32_t uid = s->view[i];

		while (at < folder->n && folder->messages[at].uid < uid)
			at++;
		if (at < folder->n && folder->messages[at].uid == uid) {
			s->view[kept++] = uid;
			continue;
		}
		if (!s->has_qresync)
			session_say(s, "* %zu EXPUNGE", kept + 1);
		GROW(gone, n, cap);
		gone[n++] = uid;
	}
	s->n_view = kept;
	if (s->has_qresync)
		session_say_vanished(s, "", gone, n);
	free(gone);
}

static void
report_flags(struct session *s)
{
	const struct folder *folder = s->folder;
	uint32_t last = s->n_view > 0 ? s->view[s->n_view - 1] : 0;

	for (size_t i = 0; i < folder->n; i++) {
		const struct message *message = &folder->messages[i];

		if (message->uid > last)
			break;
		if (message->modseq > s->told_modseq)
			session_say_flags(s, message, true);
	}
}

static void
report_new(struct session *s)
{
	const struct folder *folder = s->folder;
	uint32_t last = s->n_view > 0 ? s->view[s->n_view - 1] : 0;
	size_t before = s->n_view, at = folder->n;

	while (at > 0 && folder->messages[at - 1].uid > last)
		at--;
	for (; at < folder->n; at++)
		view_add(s, folder->messages[at].uid);
	if (s->n_view != before)
		session_say(s, "* %zu EXISTS", s->n_view);
}

void
session_report(struct session *s)
{
	if (s->folder == NULL || s->folder->modseq == s->told_modseq)
		return;
	report_gone(s);
	report_flags(s);
	report_new(s);
	s->told_modseq = s->folder->modseq;
}

void
session_say_flags(struct session *s, const struct message *message,
    bool with_uid)
{
	buf_addf(&s->out, "* %u FETCH (", session_seq(s, message->uid));
	if (with_uid)
		buf_addf(&s->out, "UID %u ", message->uid);
	buf_adds(&s->out, "FLAGS (");
	folder_print_flags(s->folder, message, &s->out);
	buf_adds(&s->out, ")");
	if (s->has_condstore)
		buf_addf(&s->out, " MODSEQ (%llu)", (unsigned long long)
		    session_modseq(s, message->modseq));
	buf_adds(&s->out, ")\r\n");
}

void
session_announce(struct folder *folder)
{
	struct session *s, *next;

	LIST_FOREACH_SAFE(s, &folder->sessions, folder_entry, next) {
		if (!s->is_idle || s->is_silent || s->is_closed ||
		    folder->modseq == s->told_modseq)
			continue;
		session_report(s);
		record_add(s->world->record, RECORD_TOLD, s->conn, s->account,
		    folder->name);
		session_flush(s);
	}
}

void
session_evict(struct folder *folder, const char *why)
{
	struct session *s, *next;

	LIST_FOREACH_SAFE(s, &folder->sessions, folder_entry, next) {
		if (s->is_idle)
			session_idle(s, false);
		session_unselect(s);
		session_bye(s, why);
	}
}

void
session_idle(struct session *s, bool on)
{
	struct counters *own = &s->account->counters;
	struct counters *all = &s->world->totals;

	s->is_idle = on;
	record_add(s->world->record, on ? RECORD_IDLE : RECORD_DONE, s->conn,
	    s->account, s->folder != NULL ? s->folder->name : "");
	if (!on) {
		s->is_silent = false;
		own->idle--;
		all->idle--;
		return;
	}
	if (++own->idle > own->idle_peak)
		own->idle_peak = own->idle;
	if (++all->idle > all->idle_peak)
		all->idle_peak = all->idle;
}
