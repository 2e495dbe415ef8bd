/*
 * search.c - SEARCH: keys to a tree, the tree against each message.
 *
 * Runs in: mockimapd.  Never blocks.
 */
#include "config.h"

#include "session.h"

#include "base/buf.h"

#include <strings.h>

#define DEPTH_MAX 20

enum key_kind {
	KEY_ALL,
	KEY_AND, /* left and right; right NULL: the end */
	KEY_OR,
	KEY_NOT,
	KEY_FLAG,    /* bits */
	KEY_KEYWORD, /* text */
	KEY_UID,     /* set */
	KEY_SEQ,     /* set */
	KEY_LARGER,  /* number */
	KEY_SMALLER,
	KEY_BEFORE,
	KEY_SINCE,
	KEY_MODSEQ,
	KEY_HEADER, /* text: the field; value: part of it, or "" */
};

struct key {
	enum key_kind kind;
	struct key *left, *right;
	unsigned bits;
	uint64_t number;
	char *text, *value;
	struct set set;
};

struct search {
	struct session *s;
	bool has_modseq;
	unsigned depth;
};

static struct key *
key_new(struct parse *in, enum key_kind kind)
{
	struct key *key = ARENA_NEW(in->arena, struct key);

	key->kind = kind;
	return key;
}

static struct key *
negate(struct parse *in, struct key *key)
{
	struct key *not = key_new(in, KEY_NOT);

	not->left = key;
	return key != NULL ? not : NULL;
}

/* "SEEN", "UNSEEN", ... */
static struct key *
flag_key(struct parse *in, struct slice word)
{
	bool is_negated = word.len > 2 && strncasecmp(word.p, "UN", 2) == 0;
	struct slice name = word;

	if (is_negated) {
		name.p += 2;
		name.len -= 2;
	}
	for (unsigned i = 0; i < 5; i++)
		if (slice_is(name, flag_names[i] + 1)) {
			struct key *key = key_new(in, KEY_FLAG);

			key->bits = 1U << i;
			return is_negated ? negate(in, key) : key;
		}
	return NULL;
}

static bool
take_text(struct parse *in, char **text_r)
{
	struct slice s;

	if (!parse_space(in) || !parse_astring(in, &s))
		return false;
	*text_r = slice_dup(s, in->arena);
	return true;
}

static bool
take_set(struct search *search, struct parse *in, struct key *key,
    uint32_t last)
{
	(void)search;
	if (!parse_set(in, &key->set))
		return false;
	set_resolve(&key->set, last);
	return true;
}

static uint32_t
last_uid(const struct session *s)
{
	return s->n_view > 0 ? s->view[s->n_view - 1] : 0;
}

/* Keys with an argument. */
static struct key *
word_key(struct search *search, struct parse *in, struct slice word)
{
	static const struct {
		const char *word;
		enum key_kind kind;
	} dates[] = { { "BEFORE", KEY_BEFORE }, { "SINCE", KEY_SINCE } };
	static const struct {
		const char *word;
		enum key_kind kind;
	} numbers[] = { { "LARGER", KEY_LARGER }, { "SMALLER", KEY_SMALLER },
		{ "MODSEQ", KEY_MODSEQ } };
	static const char *const fields[] = { "FROM", "TO", "SUBJECT", "CC" };
	struct slice date;
	int64_t secs;
	struct key *key = key_new(in, KEY_HEADER);

	for (size_t i = 0; i < 2; i++)
		if (slice_is(word, dates[i].word)) {
			key->kind = dates[i].kind;
			if (!parse_space(in) || !parse_astring(in, &date) ||
			    !parse_day(date, &secs))
				return NULL;
			key->number = (uint64_t)secs;
			return key;
		}
	for (size_t i = 0; i < 3; i++)
		if (slice_is(word, numbers[i].word)) {
			key->kind = numbers[i].kind;
			search->has_modseq |= key->kind == KEY_MODSEQ;
			return parse_space(in) && parse_number(in, INT64_MAX,
			    &key->number) ? key : NULL;
		}
	for (size_t i = 0; i < 4; i++)
		if (slice_is(word, fields[i])) {
			key->text = arena_strdup(in->arena, fields[i]);
			return take_text(in, &key->value) ? key : NULL;
		}
	if (slice_is(word, "HEADER"))
		return take_text(in, &key->text) &&
		    take_text(in, &key->value) ? key : NULL;
	if (slice_is(word, "KEYWORD") || slice_is(word, "UNKEYWORD")) {
		key->kind = KEY_KEYWORD;
		if (!take_text(in, &key->text))
			return NULL;
		return slice_is(word, "KEYWORD") ? key : negate(in, key);
	}
	if (slice_is(word, "UID")) {
		key->kind = KEY_UID;
		return parse_space(in) && take_set(search, in, key,
		    last_uid(search->s)) ? key : NULL;
	}
	return NULL;
}

static struct key *take_key(struct search *search, struct parse *in);

static struct key *
take_keys(struct search *search, struct parse *in)
{
	struct key *first = key_new(in, KEY_AND), *last = first;

	for (;;) {
		last->left = take_key(search, in);
		if (last->left == NULL)
			return NULL;
		if (!parse_space(in))
			return first;
		last->right = key_new(in, KEY_AND);
		last = last->right;
	}
}

static struct key *
take_named(struct search *search, struct parse *in)
{
	struct slice word;
	struct key *key;

	if (!parse_atom(in, &word))
		return NULL;
	if (slice_is(word, "ALL"))
		return key_new(in, KEY_ALL);
	if (slice_is(word, "NOT"))
		return parse_space(in) ? negate(in, take_key(search, in)) :
		    NULL;
	if (slice_is(word, "OR")) {
		key = key_new(in, KEY_OR);
		if (!parse_space(in) ||
		    (key->left = take_key(search, in)) == NULL ||
		    !parse_space(in) ||
		    (key->right = take_key(search, in)) == NULL)
			return NULL;
		return key;
	}
	key = flag_key(in, word);
	return key != NULL ? key : word_key(search, in, word);
}

static struct key *
take_key(struct search *search, struct parse *in)
{
	struct key *key;

	if (++search->depth > DEPTH_MAX || in->p == in->end)
		return NULL;
	if (parse_char(in, '(')) {
		key = take_keys(search, in);
		if (key != NULL && !parse_char(in, ')'))
			key = NULL;
	} else if (*in->p == '*' || (*in->p >= '0' && *in->p <= '9')) {
		key = key_new(in, KEY_SEQ);
		if (!take_set(search, in, key, (uint32_t)search->s->n_view))
			key = NULL;
	} else {
		key = take_named(search, in);
	}
	search->depth--;
	return key;
}

/* --- against a message --------------------------------------------------- */

static bool
has_keyword(const struct folder *folder, const struct message *message,
    const char *name)
{
	for (size_t i = 0; i < folder->n_keywords; i++)
		if ((message->keywords & (1U << i)) != 0 &&
		    strcasecmp(folder->keywords[i], name) == 0)
			return true;
	return false;
}

static bool
has_header(const struct session *s, const struct message *message,
    const struct key *key)
{
	struct mail_reader reader;
	struct buf head = BUF_INIT;
	size_t len = strlen(key->text);
	bool found = false;

	mail_open(&reader, &message->mail, s->account->login);
	mail_read(&reader, 0, mail_head_size(&reader), &head);
	for (char *p = head.data; p != NULL && !found;) {
		char *end = strchr(p, '\n');

		if (end != NULL)
			*end = '\0';
		found = strncasecmp(p, key->text, len) == 0 &&
		    p[len] == ':' && strcasestr(p + len, key->value) != NULL;
		p = end != NULL ? end + 1 : NULL;
	}
	buf_release(&head);
	mail_close(&reader);
	return found;
}

static bool
is_match(const struct session *s, const struct message *message,
    const struct key *key)
{
	switch (key->kind) {
	case KEY_ALL:
		return true;
	case KEY_AND:
		for (; key != NULL; key = key->right)
			if (!is_match(s, message, key->left))
				return false;
		return true;
	case KEY_OR:
		return is_match(s, message, key->left) ||
		    is_match(s, message, key->right);
	case KEY_NOT:
		return !is_match(s, message, key->left);
	case KEY_FLAG:
		return (message->flags & key->bits) != 0;
	case KEY_KEYWORD:
		return has_keyword(s->folder, message, key->text);
	case KEY_UID:
		return set_has(&key->set, message->uid);
	case KEY_SEQ:
		return set_has(&key->set, session_seq(s, message->uid));
	case KEY_LARGER:
		return message->mail.size > key->number;
	case KEY_SMALLER:
		return message->mail.size < key->number;
	case KEY_BEFORE:
		return message->date < (int64_t)key->number;
	case KEY_SINCE:
		return message->date >= (int64_t)key->number;
	case KEY_MODSEQ:
		return session_modseq(s, message->modseq) >= key->number;
	case KEY_HEADER:
		return has_header(s, message, key);
	}
	return false;
}

static void
say_found(struct session *s, const struct key *key, bool has_modseq)
{
	uint64_t highest = 0;

	buf_adds(&s->out, "* SEARCH");
	for (size_t i = 0; i < s->n_view; i++) {
		const struct message *message =
		    folder_message(s->folder, s->view[i]);

		if (message == NULL || !is_match(s, message, key))
			continue;
		buf_addf(&s->out, " %u", s->is_uid ? message->uid :
			(uint32_t)i + 1);
		if (message->modseq > highest)
			highest = message->modseq;
	}
	if (has_modseq && highest > 0)
		buf_addf(&s->out, " (MODSEQ %llu)", (unsigned long long)
		    session_modseq(s, highest));
	buf_adds(&s->out, "\r\n");
}

COMMAND(command_search)
{
	struct search search = { .s = s };
	struct slice charset;
	struct key *key;

	if (!parse_space(in)) {
		session_bad(s);
		return;
	}
	if (parse_word(in, "CHARSET")) {
		if (!parse_space(in) || !parse_astring(in, &charset) ||
		    !parse_space(in)) {
			session_bad(s);
			return;
		}
		if (!slice_is(charset, "UTF-8") &&
		    !slice_is(charset, "US-ASCII")) {
			session_answer(s, "NO [BADCHARSET (UTF-8)] Unknown");
			return;
		}
	}
	key = take_keys(&search, in);
	if (key == NULL || !parse_end(in) ||
	    (search.has_modseq && !session_has(s, CAP_CONDSTORE))) {
		session_bad(s);
		return;
	}
	s->has_condstore |= search.has_modseq;
	say_found(s, key, search.has_modseq);
	if (s->is_uid)
		session_report(s);
	session_answer(s, "OK Done");
}
