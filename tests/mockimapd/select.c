/*
 * select.c - commands that enter and leave a folder.
 *
 * Runs in: mockimapd.  Never blocks.
 */
#include "config.h"

#include "session.h"

#include "base/buf.h"
#include "base/xmem.h"

#include <stdlib.h>

/* What SELECT was asked for beside the name. */
struct select_call {
	bool is_condstore, is_qresync;
	uint64_t uidvalidity, modseq;
	struct set known; /* n 0: all */
};

/* "(uidvalidity modseq [known-uids [(seqs uids)]])"; the last is looked at and
 * not used, as a server may. */
static bool
take_qresync(struct parse *in, struct select_call *call)
{
	struct set seqs, uids;

	if (!parse_space(in) || !parse_char(in, '(') ||
	    !parse_number(in, UINT32_MAX, &call->uidvalidity) ||
	    !parse_space(in) ||
	    !parse_number(in, INT64_MAX, &call->modseq))
		return false;
	call->is_qresync = true;
	if (parse_char(in, ')'))
		return true;
	if (!parse_space(in) || !parse_set(in, &call->known))
		return false;
	if (parse_space(in) && (!parse_char(in, '(') ||
		!parse_set(in, &seqs) || !parse_space(in) ||
		!parse_set(in, &uids) || !parse_char(in, ')')))
		return false;
	return parse_char(in, ')');
}

static bool
take_parameters(struct session *s, struct parse *in, struct select_call *call)
{
	if (parse_end(in))
		return true;
	if (!session_has(s, CAP_CONDSTORE) || !parse_space(in) ||
	    !parse_char(in, '('))
		return false;
	do {
		if (parse_word(in, "CONDSTORE"))
			call->is_condstore = true;
		else if (!s->has_qresync || !parse_word(in, "QRESYNC") ||
		    !take_qresync(in, call))
			return false;
	} while (parse_space(in));
	return parse_char(in, ')') && parse_end(in);
}

static void
say_flags(struct session *s, const struct folder *folder)
{
	static const char system[] =
	    "\\Answered \\Flagged \\Deleted \\Seen \\Draft";
	struct buf words = BUF_INIT;

	buf_adds(&words, system);
	for (size_t i = 0; i < folder->n_keywords; i++)
		buf_addf(&words, " %s", folder->keywords[i]);
	session_say(s, "* FLAGS (%s)", buf_str(&words));
	if (s->is_read_only)
		session_say(s, "* OK [PERMANENTFLAGS ()] Read-only");
	else
		session_say(s, "* OK [PERMANENTFLAGS (%s \\*)] Stored",
		    buf_str(&words));
	buf_release(&words);
}

static void
say_folder(struct session *s)
{
	const struct folder *folder = s->folder;
	uint64_t modseq = session_modseq(s, folder->modseq);

	say_flags(s, folder);
	session_say(s, "* %llu EXISTS", (unsigned long long)session_lie(s,
	    FAULT_EXISTS, s->n_view));
	session_say(s, "* 0 RECENT");
	session_say(s, "* OK [UIDVALIDITY %u] UIDs valid",
	    folder->uidvalidity);
	session_say(s, "* OK [UIDNEXT %llu] Predicted next",
	    (unsigned long long)session_lie(s, FAULT_UIDNEXT,
		folder->uidnext));
	if (!session_has(s, CAP_CONDSTORE))
		return;
	if (modseq > 0)
		session_say(s, "* OK [HIGHESTMODSEQ %llu] Highest",
		    (unsigned long long)modseq);
	else
		session_say(s, "* OK [NOMODSEQ] None here");
}

static int
by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void
session_say_vanished_since(struct session *s, uint64_t modseq,
    const struct set *known)
{
	const struct folder *folder = s->folder;
	uint32_t *uids = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < folder->n_gone; i++) {
		const struct gone *gone = &folder->gone[i];

		if (session_modseq(s, gone->modseq) <= modseq ||
		    (known->n > 0 && !set_has(known, gone->uid)))
			continue;
		GROW(uids, n, cap);
		uids[n++] = gone->uid;
	}
	if (n > 0)
		qsort(uids, n, sizeof(uids[0]), by_number);
	session_say_vanished(s, " (EARLIER)", uids, n);
	free(uids);
}

static void
say_changes(struct session *s, struct select_call *call)
{
	const struct folder *folder = s->folder;

	if (call->uidvalidity != folder->uidvalidity)
		return;
	set_resolve(&call->known, UINT32_MAX);
	session_say_vanished_since(s, call->modseq, &call->known);
	for (size_t i = 0; i < folder->n; i++) {
		const struct message *message = &folder->messages[i];

		if (session_modseq(s, message->modseq) > call->modseq &&
		    (call->known.n == 0 ||
			set_has(&call->known, message->uid)))
			session_say_flags(s, message, true);
	}
}

static void
run_select(struct session *s, struct parse *in, bool is_read_only)
{
	struct select_call call = { 0 };
	struct folder *folder;
	struct slice name;

	if (!parse_space(in) || !parse_astring(in, &name) ||
	    !take_parameters(s, in, &call)) {
		session_bad(s);
		return;
	}
	if (s->folder != NULL) {
		session_unselect(s);
		if (s->has_qresync)
			session_say(s, "* OK [CLOSED] Closed");
	}
	folder = folder_find(s->account, slice_dup(name, in->arena));
	if (folder == NULL || folder->is_noselect) {
		session_answer(s, "NO [NONEXISTENT] No such folder");
		return;
	}
	s->has_condstore |= call.is_condstore;
	session_select(s, folder, is_read_only);
	say_folder(s);
	if (call.is_qresync)
		say_changes(s, &call);
	session_answer(s, "OK [READ-%s] Selected",
	    is_read_only ? "ONLY" : "WRITE");
}

COMMAND(command_select)
{
	run_select(s, in, false);
}

COMMAND(command_examine)
{
	run_select(s, in, true);
}

COMMAND(command_unselect)
{
	if (!parse_end(in)) {
		session_bad(s);
		return;
	}
	session_unselect(s);
	session_answer(s, "OK Done");
}

static bool
want_deleted(const struct message *message, void *arg)
{
	(void)arg;
	return (message->flags & FLAG_DELETED) != 0;
}

COMMAND(command_close)
{
	struct folder *folder = s->folder;
	bool is_read_only = s->is_read_only;

	if (!parse_end(in)) {
		session_bad(s);
		return;
	}
	session_unselect(s);
	if (!is_read_only &&
	    folder_expunge(folder, want_deleted, NULL, NULL) > 0)
		session_announce(folder);
	session_answer(s, "OK Done");
}
