/*
 * folders.c - commands about folders: LIST, STATUS, CREATE and the like.
 *
 * Runs in: mockimapd.  Never blocks.
 */
#include "config.h"

#include "session.h"

#include "base/buf.h"

#include <strings.h>

#define WILDCARDS_MAX 6

/* --- names --------------------------------------------------------------- */

/* A mailbox argument; NULL with a BAD said. */
static char *
take_mailbox(struct session *s, struct parse *in)
{
	struct slice name;

	if (!parse_space(in) || !parse_astring(in, &name) ||
	    memchr(name.p, '\0', name.len) != NULL) {
		session_bad(s);
		return NULL;
	}
	return slice_dup(name, in->arena);
}

/* The only argument, and a folder there is; NULL with a NO or BAD said. */
static struct folder *
take_folder(struct session *s, struct parse *in)
{
	char *name = take_mailbox(s, in);
	struct folder *folder;

	if (name == NULL)
		return NULL;
	if (!parse_end(in)) {
		session_bad(s);
		return NULL;
	}
	folder = folder_find(s->account, name);
	if (folder == NULL)
		session_answer(s, "NO [NONEXISTENT] No such folder");
	return folder;
}

static void
add_quoted(struct buf *out, const char *name)
{
	buf_addc(out, '"');
	for (; *name != '\0'; name++) {
		if (*name == '"' || *name == '\\')
			buf_addc(out, '\\');
		buf_addc(out, *name);
	}
	buf_addc(out, '"');
}

/* `*` is anything, `%` anything without a delimiter. */
static bool
matches(const char *pattern, const char *name)
{
	for (; *pattern != '\0'; pattern++, name++) {
		if (*pattern == '*' || *pattern == '%') {
			for (const char *p = name;; p++) {
				if (matches(pattern + 1, p))
					return true;
				if (*p == '\0' ||
				    (*pattern == '%' && *p == DELIMITER))
					return false;
			}
		}
		if (*pattern != *name)
			return false;
	}
	return *name == '\0';
}

static bool
is_listed(const char *pattern, const char *name)
{
	/* INBOX is meant in any case. */
	return matches(pattern, name) || (strcmp(name, "INBOX") == 0 &&
	    strcasecmp(pattern, name) == 0);
}

/* --- STATUS -------------------------------------------------------------- */

/* symbol, name */
#define STATUS_ITEMS(X)                     \
	X(STATUS_MESSAGES, "MESSAGES")      \
	X(STATUS_RECENT, "RECENT")          \
	X(STATUS_UIDNEXT, "UIDNEXT")        \
	X(STATUS_UIDVALIDITY, "UIDVALIDITY")\
	X(STATUS_UNSEEN, "UNSEEN")          \
	X(STATUS_HIGHESTMODSEQ, "HIGHESTMODSEQ")

enum status_item {
#define X(symbol, name) symbol,
	STATUS_ITEMS(X)
#undef X
	    STATUS_COUNT
};
static const char *const status_names[STATUS_COUNT] = {
#define X(symbol, name) [symbol] = name,
	STATUS_ITEMS(X)
#undef X
};

static bool
take_status_items(struct session *s, struct parse *in, unsigned *items_r)
{
	struct slice word;
	unsigned i;

	*items_r = 0;
	if (!parse_char(in, '('))
		return false;
	do {
		if (!parse_atom(in, &word))
			return false;
		for (i = 0; i < STATUS_COUNT; i++)
			if (slice_is(word, status_names[i]))
				break;
		if (i == STATUS_COUNT || (i == STATUS_HIGHESTMODSEQ &&
			!session_has(s, CAP_CONDSTORE)))
			return false;
		*items_r |= 1U << i;
	} while (parse_space(in));
	return parse_char(in, ')');
}

static uint64_t
status_value(const struct session *s, const struct folder *folder,
    enum status_item item)
{
	uint64_t n = 0;

	switch (item) {
	case STATUS_MESSAGES:
		return session_lie(s, FAULT_EXISTS, folder->n);
	case STATUS_UIDNEXT:
		return session_lie(s, FAULT_UIDNEXT, folder->uidnext);
	case STATUS_UIDVALIDITY:
		return folder->uidvalidity;
	case STATUS_HIGHESTMODSEQ:
		return session_modseq(s, folder->modseq);
	case STATUS_UNSEEN:
		for (size_t i = 0; i < folder->n; i++)
			n += !(folder->messages[i].flags & FLAG_SEEN);
		return n;
	default:
		return 0;
	}
}

static void
say_status(struct session *s, const struct folder *folder, unsigned items)
{
	const char *between = "";

	buf_adds(&s->out, "* STATUS ");
	add_quoted(&s->out, folder->name);
	buf_adds(&s->out, " (");
	for (unsigned i = 0; i < STATUS_COUNT; i++) {
		if (!(items & (1U << i)))
			continue;
		buf_addf(&s->out, "%s%s %llu", between, status_names[i],
		    (unsigned long long)status_value(s, folder, i));
		between = " ";
	}
	buf_adds(&s->out, ")\r\n");
}

COMMAND(command_status)
{
	char *name = take_mailbox(s, in);
	struct folder *folder;
	unsigned items;

	if (name == NULL)
		return;
	if (!parse_space(in) || !take_status_items(s, in, &items) ||
	    !parse_end(in)) {
		session_bad(s);
		return;
	}
	folder = folder_find(s->account, name);
	if (folder == NULL || folder->is_noselect) {
		session_answer(s, "NO [NONEXISTENT] No such folder");
		return;
	}
	say_status(s, folder, items);
	session_answer(s, "OK Done");
}

/* --- LIST ---------------------------------------------------------------- */

struct list_call {
	bool is_special_only; /* selection option SPECIAL-USE */
	unsigned status;      /* RETURN (STATUS (...)); 0: none */
};

static bool
take_selection(struct session *s, struct parse *in, struct list_call *call)
{
	struct slice word;

	if (!parse_char(in, '('))
		return true; /* none */
	if (!session_has(s, CAP_LIST_EXTENDED))
		return false;
	while (!parse_char(in, ')')) {
		if (!parse_atom(in, &word))
			return false;
		if (slice_is(word, "SPECIAL-USE") &&
		    session_has(s, CAP_SPECIAL_USE))
			call->is_special_only = true;
		else if (!slice_is(word, "SUBSCRIBED") &&
		    !slice_is(word, "REMOTE"))
			return false;
		parse_space(in);
	}
	return parse_space(in);
}

static bool
take_return(struct session *s, struct parse *in, struct list_call *call)
{
	struct slice word;

	if (parse_end(in))
		return true;
	if (!session_has(s, CAP_LIST_EXTENDED) || !parse_space(in) ||
	    !parse_word(in, "RETURN") || !parse_space(in) ||
	    !parse_char(in, '('))
		return false;
	while (!parse_char(in, ')')) {
		if (!parse_atom(in, &word))
			return false;
		if (slice_is(word, "STATUS") &&
		    session_has(s, CAP_LIST_STATUS)) {
			if (!parse_space(in) ||
			    !take_status_items(s, in, &call->status))
				return false;
		} else if (!slice_is(word, "SUBSCRIBED") &&
		    !slice_is(word, "CHILDREN") &&
		    !(slice_is(word, "SPECIAL-USE") &&
			session_has(s, CAP_SPECIAL_USE))) {
			return false;
		}
		parse_space(in);
	}
	return parse_end(in);
}

/* matches() tries each place for each of them. */
static bool
has_too_many_wildcards(struct slice pattern)
{
	size_t n = 0;

	for (size_t i = 0; i < pattern.len; i++)
		n += pattern.p[i] == '*' || pattern.p[i] == '%';
	return n > WILDCARDS_MAX;
}

/* Reference and pattern, joined; NULL: not understood. */
static char *
take_pattern(struct parse *in)
{
	struct slice reference, pattern;

	if (!parse_astring(in, &reference) || !parse_space(in) ||
	    !parse_list_mailbox(in, &pattern) ||
	    has_too_many_wildcards(pattern) ||
	    memchr(reference.p, '\0', reference.len) != NULL ||
	    memchr(pattern.p, '\0', pattern.len) != NULL)
		return NULL;
	return arena_printf(in->arena, "%.*s%.*s", (int)reference.len,
	    reference.p, (int)pattern.len, pattern.p);
}

static void
say_list(struct session *s, const char *word, const struct folder *folder)
{
	buf_addf(&s->out, "* %s (%s%s", word,
	    folder->is_noselect ? "\\Noselect " : "",
	    folder_has_children(folder) ? "\\HasChildren" :
		"\\HasNoChildren");
	if (folder->use != NULL && session_has(s, CAP_SPECIAL_USE))
		buf_addf(&s->out, " %s", folder->use);
	buf_addf(&s->out, ") \"%c\" ", DELIMITER);
	add_quoted(&s->out, folder->name);
	buf_adds(&s->out, "\r\n");
}

static void
run_list(struct session *s, struct parse *in, const char *word)
{
	const struct account *account = s->account;
	struct list_call call = { 0 };
	char *pattern;

	if (!parse_space(in) || !take_selection(s, in, &call) ||
	    (pattern = take_pattern(in)) == NULL ||
	    !take_return(s, in, &call)) {
		session_bad(s);
		return;
	}
	if (pattern[0] == '\0')
		session_say(s, "* %s (\\Noselect) \"%c\" \"\"", word,
		    DELIMITER);
	for (size_t i = 0; i < account->n_folders; i++) {
		const struct folder *folder = account->folders[i];

		if (!is_listed(pattern, folder->name) ||
		    (call.is_special_only && folder->use == NULL))
			continue;
		say_list(s, word, folder);
		if (call.status != 0 && !folder->is_noselect)
			say_status(s, folder, call.status);
	}
	session_answer(s, "OK Done");
}

COMMAND(command_list)
{
	run_list(s, in, "LIST");
}

/* Everything is subscribed. */
COMMAND(command_lsub)
{
	run_list(s, in, "LSUB");
}

COMMAND(command_subscribe)
{
	if (take_folder(s, in) != NULL)
		session_answer(s, "OK Done");
}

/* --- making and unmaking ------------------------------------------------- */

COMMAND(command_create)
{
	char *name = take_mailbox(s, in);
	size_t len;

	if (name == NULL)
		return;
	if (!parse_end(in)) {
		session_bad(s);
		return;
	}
	len = strlen(name);
	if (len > 0 && name[len - 1] == DELIMITER)
		name[len - 1] = '\0'; /* "will have children" */
	if (folder_create(s->account, name) != NULL)
		session_answer(s, "OK Done");
	else if (folder_find(s->account, name) != NULL)
		session_answer(s, "NO [ALREADYEXISTS] There is one");
	else
		session_answer(s, "NO [CANNOT] No such name");
}

COMMAND(command_delete)
{
	struct folder *folder = take_folder(s, in);

	if (folder == NULL)
		return;
	if (strcmp(folder->name, "INBOX") == 0 ||
	    folder_has_children(folder)) {
		session_answer(s, "NO [CANNOT] Not this one");
		return;
	}
	/* Those that have it selected lose their connection, this one not. */
	if (s->folder == folder)
		session_unselect(s);
	session_evict(folder, "The folder is deleted");
	folder_remove(folder);
	session_answer(s, "OK Done");
}

static bool
want_all(const struct message *message, void *arg)
{
	(void)message;
	(void)arg;
	return true;
}

/* INBOX stays, and gives its messages away. */
static bool
rename_inbox(struct folder *inbox, const char *name)
{
	struct folder *to = folder_create(inbox->account, name);

	if (to == NULL)
		return false;
	for (size_t i = 0; i < inbox->n; i++)
		folder_copy(inbox, &inbox->messages[i], to);
	folder_expunge(inbox, want_all, NULL, NULL);
	session_announce(inbox);
	return true;
}

COMMAND(command_rename)
{
	char *old = take_mailbox(s, in);
	char *name = old != NULL ? take_mailbox(s, in) : NULL;
	struct folder *folder;

	if (name == NULL)
		return;
	if (!parse_end(in)) {
		session_bad(s);
		return;
	}
	folder = folder_find(s->account, old);
	if (folder == NULL)
		session_answer(s, "NO [NONEXISTENT] No such folder");
	else if (strcmp(folder->name, "INBOX") == 0 ?
	    rename_inbox(folder, name) : folder_rename(folder, name))
		session_answer(s, "OK Done");
	else
		session_answer(s, "NO [CANNOT] Not to that name");
}
