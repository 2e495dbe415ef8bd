/*
 * messages.c - commands that change messages: STORE, COPY, MOVE, EXPUNGE,
 * APPEND.
 *
 * Runs in: mockimapd.  Never blocks.
 */
#include "config.h"

#include "session.h"

#include "base/clock.h"
#include "base/xmem.h"

#include <strings.h>

/* --- sets ---------------------------------------------------------------- */

static int
by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void
bounds(const struct session *s, struct range range, size_t *from_r,
    size_t *end_r)
{
	if (s->is_uid) {
		*from_r = session_find(s, range.from);
		*end_r = range.to == UINT32_MAX ? s->n_view :
		    session_find(s, range.to + 1);
	} else {
		*from_r = range.from > 0 ? range.from - 1 : 0;
		*end_r = range.to;
	}
	if (*end_r > s->n_view)
		*end_r = s->n_view;
}

struct uids
session_resolve(const struct session *s, struct set *set, struct arena *arena)
{
	struct uids uids = { NULL, 0 };
	uint32_t last = s->n_view > 0 ? s->view[s->n_view - 1] : 0;
	size_t n = 0, from, end;

	set_resolve(set, s->is_uid ? last : (uint32_t)s->n_view);
	for (size_t i = 0; i < set->n; i++) {
		bounds(s, set->ranges[i], &from, &end);
		n += end > from ? end - from : 0;
	}
	uids.items = ARENA_ARRAY(arena, uint32_t, n + 1);
	for (size_t i = 0; i < set->n; i++) {
		bounds(s, set->ranges[i], &from, &end);
		while (from < end)
			uids.items[uids.n++] = s->view[from++];
	}
	qsort(uids.items, uids.n, sizeof(uids.items[0]), by_number);
	n = 0;
	for (size_t i = 0; i < uids.n; i++)
		if (i == 0 || uids.items[i] != uids.items[n - 1])
			uids.items[n++] = uids.items[i];
	uids.n = n;
	return uids;
}

/* "12,13" and so on, for COPYUID. */
static void
add_uid(struct buf *out, uint32_t uid)
{
	buf_addf(out, "%s%u", out->len > 0 ? "," : "", uid);
}

/* --- STORE --------------------------------------------------------------- */

struct store_call {
	struct set set;
	bool has_unchanged, is_silent;
	uint64_t unchanged_since;
	enum flag_change change;
	struct flag_list flags;
};

static bool
take_store(struct session *s, struct parse *in, struct store_call *call)
{
	static const char *const words[] = { "FLAGS", "FLAGS.SILENT" };

	if (!parse_space(in) || !parse_set(in, &call->set) ||
	    !parse_space(in))
		return false;
	if (parse_char(in, '(')) {
		if (!session_has(s, CAP_CONDSTORE) ||
		    !parse_word(in, "UNCHANGEDSINCE") || !parse_space(in) ||
		    !parse_number(in, INT64_MAX, &call->unchanged_since) ||
		    !parse_char(in, ')') || !parse_space(in))
			return false;
		call->has_unchanged = true;
		s->has_condstore = true;
	}
	call->change = parse_char(in, '+') ? FLAGS_ADD :
	    parse_char(in, '-') ? FLAGS_REMOVE : FLAGS_SET;
	call->is_silent = parse_word(in, words[1]);
	return (call->is_silent || parse_word(in, words[0])) &&
	    parse_space(in) && parse_flags(in, true, &call->flags) &&
	    parse_end(in);
}

static void
store_one(struct session *s, const struct store_call *call,
    struct message *message, struct buf *modified)
{
	if (call->has_unchanged && message->modseq > call->unchanged_since) {
		add_uid(modified, s->is_uid ? message->uid :
			session_seq(s, message->uid));
		return;
	}
	folder_flag(s->folder, message, call->change, &call->flags);
	if (!call->is_silent || s->has_condstore)
		session_say_flags(s, message, s->is_uid || s->has_qresync);
}

COMMAND(command_store)
{
	struct folder *folder = s->folder;
	struct store_call call = { .is_silent = false };
	struct buf modified = BUF_INIT;
	bool is_level = s->told_modseq == folder->modseq;
	struct uids uids;

	if (!take_store(s, in, &call)) {
		session_bad(s);
		return;
	}
	if (s->is_read_only) {
		session_answer(s, "NO [READ-ONLY] Examined only");
		return;
	}
	uids = session_resolve(s, &call.set, in->arena);
	for (size_t i = 0; i < uids.n; i++) {
		struct message *message =
		    folder_message(folder, uids.items[i]);

		if (message != NULL)
			store_one(s, &call, message, &modified);
	}
	/* Its own changes are no news to it. */
	if (is_level)
		s->told_modseq = folder->modseq;
	else if (s->is_uid)
		session_report(s);
	if (modified.len > 0)
		session_answer(s, "OK [MODIFIED %s] Some were changed",
		    buf_str(&modified));
	else
		session_answer(s, "OK Done");
	buf_release(&modified);
	session_announce(folder);
}

/* --- COPY, MOVE, EXPUNGE ------------------------------------------------- */

static size_t
copy_all(struct session *s, const struct uids *uids, struct folder *to,
    struct buf *from_set, struct buf *to_set)
{
	size_t n = 0;

	for (size_t i = 0; i < uids->n; i++) {
		struct message *message =
		    folder_message(s->folder, uids->items[i]);

		if (message == NULL)
			continue;
		add_uid(from_set, message->uid);
		add_uid(to_set, folder_copy(s->folder, message, to));
		n++;
	}
	return n;
}

static bool
want_listed(const struct message *message, void *arg)
{
	const struct uids *uids = arg;

	return bsearch(&message->uid, uids->items, uids->n,
	    sizeof(uids->items[0]), by_number) != NULL;
}

static void
say_moved(struct session *s, const struct folder *to, const char *from_set,
    const char *to_set)
{
	if (session_has(s, CAP_UIDPLUS))
		session_say(s, "* OK [COPYUID %u %s %s] Moved",
		    to->uidvalidity, from_set, to_set);
}

static void
run_copy(struct session *s, struct parse *in, bool is_move)
{
	struct buf from_set = BUF_INIT, to_set = BUF_INIT;
	struct folder *to;
	struct slice name;
	struct uids uids;
	struct set set;
	size_t n;

	if (!parse_space(in) || !parse_set(in, &set) || !parse_space(in) ||
	    !parse_astring(in, &name) || !parse_end(in)) {
		session_bad(s);
		return;
	}
	to = folder_find(s->account, slice_dup(name, in->arena));
	if (to == NULL || to->is_noselect || (is_move && s->is_read_only)) {
		session_answer(s, "NO [TRYCREATE] No such folder");
		return;
	}
	uids = session_resolve(s, &set, in->arena);
	n = copy_all(s, &uids, to, &from_set, &to_set);
	if (is_move && n > 0) {
		say_moved(s, to, buf_str(&from_set), buf_str(&to_set));
		folder_expunge(s->folder, want_listed, &uids, NULL);
	}
	if (is_move || s->is_uid)
		session_report(s);
	if (!is_move && n > 0 && session_has(s, CAP_UIDPLUS))
		session_answer(s, "OK [COPYUID %u %s %s] Copied",
		    to->uidvalidity, buf_str(&from_set), buf_str(&to_set));
	else
		session_answer(s, "OK Done");
	buf_release(&from_set);
	buf_release(&to_set);
	session_announce(to);
	session_announce(s->folder);
}

COMMAND(command_copy)
{
	run_copy(s, in, false);
}

COMMAND(command_move)
{
	run_copy(s, in, true);
}

static bool
want_deleted(const struct message *message, void *arg)
{
	const struct uids *uids = arg;

	return (message->flags & FLAG_DELETED) != 0 &&
	    (uids == NULL || want_listed(message, arg));
}

COMMAND(command_expunge)
{
	struct uids uids;
	struct set set;

	if (s->is_uid && (!session_has(s, CAP_UIDPLUS) || !parse_space(in) ||
		!parse_set(in, &set))) {
		session_bad(s);
		return;
	}
	if (!parse_end(in)) {
		session_bad(s);
		return;
	}
	if (s->is_read_only) {
		session_answer(s, "NO [READ-ONLY] Examined only");
		return;
	}
	if (s->is_uid)
		uids = session_resolve(s, &set, in->arena);
	folder_expunge(s->folder, want_deleted, s->is_uid ? &uids : NULL,
	    NULL);
	session_report(s);
	session_answer(s, "OK Done");
	session_announce(s->folder);
}

/* --- APPEND -------------------------------------------------------------- */

struct append_call {
	struct slice name, bytes;
	struct flag_list flags;
	int64_t date;
};

static bool
take_append(struct parse *in, struct append_call *call)
{
	struct slice date;

	if (!parse_space(in) || !parse_astring(in, &call->name) ||
	    !parse_space(in))
		return false;
	if (in->p < in->end && *in->p == '(' &&
	    (!parse_flags(in, false, &call->flags) || !parse_space(in)))
		return false;
	if (in->p < in->end && *in->p == '"' &&
	    (!parse_string(in, &date) ||
		!parse_date_time(date, &call->date) || !parse_space(in)))
		return false;
	return parse_literal(in, &call->bytes) && parse_end(in);
}

COMMAND(command_append)
{
	struct append_call call = { .date = clock_wall_secs() };
	struct folder *folder;
	uint32_t uid;

	if (!take_append(in, &call)) {
		session_bad(s);
		return;
	}
	folder = folder_find(s->account, slice_dup(call.name, in->arena));
	if (folder == NULL || folder->is_noselect) {
		session_answer(s, "NO [TRYCREATE] No such folder");
		return;
	}
	uid = folder_append(folder, raw_new(call.bytes.p,
	    (uint32_t)call.bytes.len), &call.flags, call.date);
	if (s->folder == folder)
		session_report(s);
	if (session_has(s, CAP_UIDPLUS))
		session_answer(s, "OK [APPENDUID %u %u] Done",
		    folder->uidvalidity, uid);
	else
		session_answer(s, "OK Done");
	session_announce(folder);
}
