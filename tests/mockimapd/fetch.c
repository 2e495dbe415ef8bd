/*
 * fetch.c - FETCH: what is asked for, and saying it bit by bit.
 *
 * Runs in: mockimapd.  Never blocks.
 *
 * The bytes of a message are made as the client takes them, so a FETCH of a
 * whole mailbox of big messages holds a few hundred kilobytes at a time.
 */
#include "config.h"

#include "session.h"

#include "base/buf.h"
#include "base/xmem.h"
#include "transport.h"

#include <strings.h>

#define STEP_BYTES 65536
#define PENDING_MAX (4 * STEP_BYTES)
#define ITEMS_MAX 16

enum item_kind {
	ITEM_UID,
	ITEM_FLAGS,
	ITEM_DATE,
	ITEM_SIZE,
	ITEM_MODSEQ,
	ITEM_BODY,
};

enum section { SECTION_ALL, SECTION_HEADER, SECTION_TEXT, SECTION_FIELDS };

struct item {
	enum item_kind kind;
	enum section section;
	const char *label;    /* "BODY[HEADER]" */
	bool is_peek, is_not; /* HEADER.FIELDS.NOT */
	char **fields;
	size_t n_fields;
	bool has_range;
	uint64_t from, len; /* "<from.len>" */
};

struct fetch {
	struct arena *arena;
	struct item items[ITEMS_MAX];
	size_t n_items;
	struct uids uids;
	bool has_since;
	uint64_t since;
	bool with_vanished, marks_seen, has_marked;

	/* where it is */
	size_t at;		   /* in uids */
	bool is_open;		   /* in the middle of a message */
	struct mail_reader reader;
	size_t item;		   /* the next, once a message is begun */
	uint32_t body_at, body_end; /* literal being said */
};

/* --- what is asked for --------------------------------------------------- */

static bool
take_field_names(struct parse *in, struct arena *arena, struct item *item)
{
	struct slice name;

	item->fields = ARENA_ARRAY(arena, char *, 64);
	if (!parse_space(in) || !parse_char(in, '('))
		return false;
	do {
		if (item->n_fields == 64 || !parse_astring(in, &name))
			return false;
		item->fields[item->n_fields++] = slice_dup(name, arena);
	} while (parse_space(in));
	return parse_char(in, ')');
}

/* After "BODY[" or "BODY.PEEK[". */
static bool
take_section(struct parse *in, struct arena *arena, struct item *item)
{
	const char *begin = in->p;
	struct slice word = { "", 0 };

	if (in->p < in->end && *in->p != ']' && !parse_atom(in, &word))
		return false;
	if (word.len == 0)
		item->section = SECTION_ALL;
	else if (slice_is(word, "HEADER"))
		item->section = SECTION_HEADER;
	else if (slice_is(word, "TEXT"))
		item->section = SECTION_TEXT;
	else if (slice_is(word, "HEADER.FIELDS") ||
	    slice_is(word, "HEADER.FIELDS.NOT"))
		item->section = SECTION_FIELDS;
	else
		return false;
	item->is_not = word.len == strlen("HEADER.FIELDS.NOT");
	if (item->section == SECTION_FIELDS &&
	    !take_field_names(in, arena, item))
		return false;
	item->label = arena_printf(arena, "BODY[%.*s]",
	    (int)(in->p - begin), begin);
	return parse_char(in, ']');
}

static bool
take_range(struct parse *in, struct arena *arena, struct item *item)
{
	if (!parse_char(in, '<'))
		return true;
	item->has_range = true;
	if (!parse_number(in, UINT32_MAX, &item->from) ||
	    !parse_char(in, '.') ||
	    !parse_number(in, UINT32_MAX, &item->len) || item->len == 0 ||
	    !parse_char(in, '>'))
		return false;
	item->label = arena_printf(arena, "%s<%llu>", item->label,
	    (unsigned long long)item->from);
	return true;
}

static bool
take_body(struct parse *in, struct arena *arena, struct item *item)
{
	item->kind = ITEM_BODY;
	return take_section(in, arena, item) && take_range(in, arena, item);
}

static bool
starts_with(struct parse *in, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(in->end - in->p) < len ||
	    strncasecmp(in->p, word, len) != 0)
		return false;
	in->p += len;
	return true;
}

/* ENVELOPE and BODYSTRUCTURE are not there: who needs them may add them. */
static bool
take_item(struct session *s, struct parse *in, struct fetch *fetch)
{
	static const struct {
		const char *word;
		struct item item;
	} words[] = {
		{ "UID", { .kind = ITEM_UID } },
		{ "FLAGS", { .kind = ITEM_FLAGS } },
		{ "INTERNALDATE", { .kind = ITEM_DATE } },
		{ "RFC822.SIZE", { .kind = ITEM_SIZE } },
		{ "MODSEQ", { .kind = ITEM_MODSEQ } },
		{ "RFC822", { .kind = ITEM_BODY, .label = "RFC822" } },
		{ "RFC822.HEADER", { .kind = ITEM_BODY, .is_peek = true,
			.section = SECTION_HEADER,
			.label = "RFC822.HEADER" } },
		{ "RFC822.TEXT", { .kind = ITEM_BODY,
			.section = SECTION_TEXT, .label = "RFC822.TEXT" } },
	};
	struct item *item = &fetch->items[fetch->n_items++];

	if (fetch->n_items > ITEMS_MAX - 3) /* room for those implied */
		return false;
	if (starts_with(in, "BODY.PEEK[")) {
		item->is_peek = true;
		return take_body(in, fetch->arena, item);
	}
	if (starts_with(in, "BODY["))
		return take_body(in, fetch->arena, item);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (parse_word(in, words[i].word)) {
			*item = words[i].item;
			return item->kind != ITEM_MODSEQ ||
			    session_has(s, CAP_CONDSTORE);
		}
	return false;
}

static bool
take_items(struct session *s, struct parse *in, struct fetch *fetch)
{
	if (parse_word(in, "FAST")) {
		fetch->items[0].kind = ITEM_FLAGS;
		fetch->items[1].kind = ITEM_DATE;
		fetch->items[2].kind = ITEM_SIZE;
		fetch->n_items = 3;
		return true;
	}
	if (!parse_char(in, '('))
		return take_item(s, in, fetch);
	do {
		if (!take_item(s, in, fetch))
			return false;
	} while (parse_space(in));
	return parse_char(in, ')');
}

/* "(CHANGEDSINCE n [VANISHED])" */
static bool
take_modifiers(struct session *s, struct parse *in, struct fetch *fetch)
{
	if (parse_end(in))
		return true;
	if (!session_has(s, CAP_CONDSTORE) || !parse_space(in) ||
	    !parse_char(in, '('))
		return false;
	do {
		if (parse_word(in, "CHANGEDSINCE")) {
			if (!parse_space(in) ||
			    !parse_number(in, INT64_MAX, &fetch->since))
				return false;
			fetch->has_since = true;
		} else if (parse_word(in, "VANISHED") && s->has_qresync &&
		    s->is_uid) {
			fetch->with_vanished = true;
		} else {
			return false;
		}
	} while (parse_space(in));
	return parse_char(in, ')') && parse_end(in) &&
	    (!fetch->with_vanished || fetch->has_since);
}

static bool
has_item(const struct fetch *fetch, enum item_kind kind)
{
	for (size_t i = 0; i < fetch->n_items; i++)
		if (fetch->items[i].kind == kind)
			return true;
	return false;
}

static void
imply(struct fetch *fetch, enum item_kind kind)
{
	if (!has_item(fetch, kind))
		fetch->items[fetch->n_items++].kind = kind;
}

/* UID first, where everybody looks for it. */
static void
imply_uid(struct fetch *fetch)
{
	if (has_item(fetch, ITEM_UID))
		return;
	memmove(&fetch->items[1], &fetch->items[0],
	    fetch->n_items * sizeof(fetch->items[0]));
	fetch->items[0] = (struct item){ .kind = ITEM_UID };
	fetch->n_items++;
}

static void
note_implied(struct session *s, struct fetch *fetch)
{
	if (s->is_uid)
		imply_uid(fetch);
	if (fetch->has_since || has_item(fetch, ITEM_MODSEQ)) {
		imply(fetch, ITEM_MODSEQ);
		s->has_condstore = true;
	}
	for (size_t i = 0; i < fetch->n_items; i++)
		if (fetch->items[i].kind == ITEM_BODY &&
		    !fetch->items[i].is_peek && !s->is_read_only)
			fetch->marks_seen = true;
}

/* --- saying it ----------------------------------------------------------- */

static bool
is_wanted_field(const struct item *item, const char *line, size_t len)
{
	for (size_t i = 0; i < item->n_fields; i++) {
		size_t n = strlen(item->fields[i]);

		if (n < len && line[n] == ':' &&
		    strncasecmp(line, item->fields[i], n) == 0)
			return !item->is_not;
	}
	return item->is_not;
}

/* Header lines with their continuations, and the empty line. */
static void
add_fields(const struct mail_reader *reader, const struct item *item,
    struct buf *out)
{
	struct buf head = BUF_INIT;
	bool is_wanted = false;
	char *p, *end;

	mail_read(reader, 0, mail_head_size(reader), &head);
	p = head.data;
	end = p + head.len;
	while (p < end) {
		char *next = memchr(p, '\n', (size_t)(end - p));

		next = next != NULL ? next + 1 : end;
		if (*p != ' ' && *p != '\t')
			is_wanted = *p != '\r' && *p != '\n' &&
			    is_wanted_field(item, p, (size_t)(end - p));
		if (is_wanted)
			buf_add(out, p, (size_t)(next - p));
		p = next;
	}
	buf_adds(out, "\r\n");
	buf_release(&head);
}

static void
add_date(struct buf *out, int64_t secs)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	time_t t = (time_t)secs;
	struct tm tm;

	gmtime_r(&t, &tm);
	buf_addf(out, "INTERNALDATE \"%2d-%.3s-%04d %02d:%02d:%02d +0000\"",
	    tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900,
	    tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static void
clip(const struct item *item, uint64_t *from, uint64_t *end)
{
	if (!item->has_range)
		return;
	*from = *from + item->from < *end ? *from + item->from : *end;
	if (*end - *from > item->len)
		*end = *from + item->len;
}

/* A literal of computed bytes is said at once, one of the message later. */
static void
begin_body(struct session *s, struct fetch *fetch, const struct item *item)
{
	const struct mail_reader *reader = &fetch->reader;
	uint64_t from = 0, end = reader->mail.size;

	if (item->section == SECTION_FIELDS) {
		struct buf fields = BUF_INIT;

		add_fields(reader, item, &fields);
		end = fields.len;
		clip(item, &from, &end);
		buf_addf(&s->out, "%s {%llu}\r\n", item->label,
		    (unsigned long long)(end - from));
		buf_add(&s->out, fields.data + from, (size_t)(end - from));
		buf_release(&fields);
		return;
	}
	if (item->section == SECTION_HEADER)
		end = mail_head_size(reader);
	else if (item->section == SECTION_TEXT)
		from = mail_head_size(reader);
	clip(item, &from, &end);
	buf_addf(&s->out, "%s {%llu}\r\n", item->label,
	    (unsigned long long)(end - from));
	fetch->body_at = (uint32_t)from;
	fetch->body_end = (uint32_t)end;
	s->world->totals.bodies += item->section == SECTION_ALL;
	s->account->counters.bodies += item->section == SECTION_ALL;
}

static void
say_item(struct session *s, struct fetch *fetch,
    const struct message *message, const struct item *item)
{
	const struct fault *lie;

	switch (item->kind) {
	case ITEM_UID:
		buf_addf(&s->out, "UID %u", message->uid);
		break;
	case ITEM_FLAGS:
		buf_adds(&s->out, "FLAGS (");
		folder_print_flags(s->folder, message, &s->out);
		buf_addc(&s->out, ')');
		break;
	case ITEM_DATE:
		add_date(&s->out, message->date);
		break;
	case ITEM_SIZE:
		lie = fault_lie(s->world->faults, FAULT_SIZE,
		    s->account->login);
		buf_addf(&s->out, "RFC822.SIZE %llu", lie != NULL ?
			(unsigned long long)lie->bytes : message->mail.size);
		break;
	case ITEM_MODSEQ:
		buf_addf(&s->out, "MODSEQ (%llu)", (unsigned long long)
		    session_modseq(s, message->modseq));
		break;
	case ITEM_BODY:
		begin_body(s, fetch, item);
		break;
	}
}

static void
mark_seen(struct session *s, struct fetch *fetch, struct message *message)
{
	const struct flag_list seen = { .flags = FLAG_SEEN };

	if (fetch->marks_seen &&
	    folder_flag(s->folder, message, FLAGS_ADD, &seen)) {
		fetch->has_marked = true;
		imply(fetch, ITEM_FLAGS);
	}
}

/* The next message that is there and wanted; NULL: no more. */
static struct message *
next_message(struct session *s, struct fetch *fetch)
{
	while (fetch->at < fetch->uids.n) {
		struct message *message = folder_message(s->folder,
		    fetch->uids.items[fetch->at++]);

		if (message != NULL && (!fetch->has_since ||
			session_modseq(s, message->modseq) > fetch->since))
			return message;
	}
	return NULL;
}

static bool
begin_message(struct session *s, struct fetch *fetch)
{
	struct message *message = next_message(s, fetch);

	if (message == NULL)
		return false;
	mark_seen(s, fetch, message);
	mail_open(&fetch->reader, &message->mail, s->account->login);
	fetch->is_open = true;
	fetch->item = 0;
	buf_addf(&s->out, "* %u FETCH (", session_seq(s, message->uid));
	return true;
}

/* Up to and with the head of the next literal, or the end of the message.  It
 * may have been expunged meanwhile: then the rest of it stays away. */
static void
go_on_in_message(struct session *s, struct fetch *fetch)
{
	struct message *message = folder_message(s->folder,
	    fetch->uids.items[fetch->at - 1]);

	while (message != NULL && fetch->item < fetch->n_items) {
		const struct item *item = &fetch->items[fetch->item];

		if (fetch->item++ > 0)
			buf_addc(&s->out, ' ');
		say_item(s, fetch, message, item);
		if (fetch->body_at < fetch->body_end)
			return;
	}
	buf_adds(&s->out, ")\r\n");
	mail_close(&fetch->reader);
	fetch->is_open = false;
}

/* False: all is said. */
static bool
step(struct session *s, struct fetch *fetch)
{
	if (fetch->body_at < fetch->body_end) {
		size_t len = fetch->body_end - fetch->body_at;

		if (len > STEP_BYTES)
			len = STEP_BYTES;
		mail_read(&fetch->reader, fetch->body_at, len, &s->out);
		fetch->body_at += (uint32_t)len;
		return true;
	}
	if (!fetch->is_open && !begin_message(s, fetch))
		return false;
	go_on_in_message(s, fetch);
	return true;
}

static void
finish(struct session *s)
{
	bool has_marked = s->fetch->has_marked;

	fetch_free(&s->fetch);
	if (s->is_uid)
		session_report(s);
	session_answer(s, "OK Done");
	if (has_marked)
		session_announce(s->folder);
}

void
fetch_go_on(struct session *s)
{
	while (!s->is_closed && !s->is_ending && s->fetch != NULL &&
	    transport_pending(s->transport) < PENDING_MAX) {
		while (s->out.len < STEP_BYTES)
			if (!step(s, s->fetch)) {
				finish(s);
				return;
			}
		session_flush(s);
	}
}

void
fetch_free(struct fetch **fetch)
{
	struct arena *arena;

	if (*fetch == NULL)
		return;
	if ((*fetch)->is_open)
		mail_close(&(*fetch)->reader);
	arena = (*fetch)->arena;
	arena_free(&arena);
	free(*fetch);
	*fetch = NULL;
}

/* Here `*` is any UID, also one above the last that is still there. */
static void
say_vanished(struct session *s, const struct fetch *fetch, struct set set,
    struct arena *arena)
{
	struct range *ranges = ARENA_ARRAY(arena, struct range, set.n);

	memcpy(ranges, set.ranges, set.n * sizeof(ranges[0]));
	set.ranges = ranges;
	set_resolve(&set, UINT32_MAX);
	session_say_vanished_since(s, fetch->since, &set);
}

COMMAND(command_fetch)
{
	struct fetch *fetch = xcalloc(1, sizeof(*fetch));
	struct set set;

	fetch->arena = arena_new("fetch");
	if (!parse_space(in) || !parse_set(in, &set) || !parse_space(in) ||
	    !take_items(s, in, fetch) || !take_modifiers(s, in, fetch)) {
		session_bad(s);
		fetch_free(&fetch);
		return;
	}
	note_implied(s, fetch);
	if (fetch->with_vanished)
		say_vanished(s, fetch, set, in->arena);
	fetch->uids = session_resolve(s, &set, fetch->arena);
	s->fetch = fetch;
	fetch_go_on(s);
}
