/*
 * sanitize_fetch.c - FETCH lines with the items we ask for, and no others.
 *
 * Runs in: hot, pool and job children.  Never blocks.
 *
 * UID, FLAGS, INTERNALDATE, RFC822.SIZE, MODSEQ, BODY[], BODY[HEADER] and
 * BODY[HEADER.FIELDS ...] are written anew; every other item is skipped with
 * its value, however deep or broken (L015-L039).  When a line stops making
 * sense, what was understood so far is passed on as a complete reply.
 */
#include "imap/keywords.h"
#include "imap/sanitize_private.h"

#include <ctype.h>
#include <strings.h>

/* A body above the limit is skipped, not cut off, when it is at most this many
 * times as large. */
#define BODY_SKIPPED_MAX 4

static void
begin_item(struct sanitizer *m, struct buf *out, const char *name)
{
	if (m->has_items)
		buf_addc(out, ' ');
	buf_adds(out, name);
	m->has_items = true;
}

/* false: not closed on this line. */
static bool
skip_quoted(struct scan *s)
{
	for (s->p++; s->p < s->end; s->p++) {
		if (*s->p == '\\' && s->p + 1 < s->end)
			s->p++;
		else if (*s->p == '"') {
			s->p++;
			return true;
		}
	}
	return false;
}

static bool
is_atom_end(char c)
{
	return c == ' ' || c == '\t' || c == '(' || c == ')' || c == '"';
}

/*
 * Skips one value, or the rest of one whose parentheses are m->value_depth
 * deep.  false: the line ended first.
 */
static bool
skip_value(struct sanitizer *m, struct scan *s)
{
	do {
		scan_blanks(s);
		if (s->p == s->end)
			return false;
		if (*s->p == '"') {
			if (!skip_quoted(s))
				return false;
		} else if (*s->p == '(') {
			m->value_depth++;
			s->p++;
		} else if (*s->p == ')') {
			if (m->value_depth == 0)
				return true; /* no value at all */
			m->value_depth--;
			s->p++;
		} else {
			while (s->p < s->end && !is_atom_end(*s->p))
				s->p++;
		}
	} while (m->value_depth > 0);
	return true;
}

/* "BODY[HEADER.FIELDS (X "Y")]<0>" is one name. */
static size_t
take_name(struct scan *s, const char **name_r)
{
	const char *from = s->p;

	while (s->p < s->end && !is_atom_end(*s->p) && *s->p != '[')
		s->p++;
	if (s->p < s->end && *s->p == '[') {
		while (s->p < s->end && *s->p != ']') {
			if (*s->p != '"')
				s->p++;
			else if (!skip_quoted(s))
				break;
		}
		if (s->p < s->end)
			s->p++;
		while (s->p < s->end && !is_atom_end(*s->p))
			s->p++;
	}
	*name_r = from;
	return (size_t)(s->p - from);
}

/* --- items --------------------------------------------------------------- */

static bool
is_flag(const char *p, const char *end)
{
	if (p < end && *p == '\\')
		p++;
	if (p == end)
		return false;
	for (; p < end; p++)
		if (*p <= ' ' || *p >= 0x7F || strchr("(){%*\"\\]", *p))
			return false;
	return true;
}

/*
 * A keyword is any word of UTF-8: "Café", "with]bracket", "Perso/Travail" are
 * what servers have.  What is no atom goes through the parser in a spelling of
 * ours (keywords.h); what is no word at all is left out (L033).
 */
static void
add_flag(struct buf *flags, const char *word, size_t len)
{
	size_t before = flags->len;

	if (word_is(word, len, "NIL"))
		return;
	if (before > 0)
		buf_addc(flags, ' ');
	if (is_flag(word, word + len) && !keyword_is_encoded(word, len))
		buf_add(flags, word, len);
	else if (len == 0 || word[0] == '\\' ||
	    !keyword_encode(flags, word, len))
		flags->len = before;
}

/* `"\\Flagged"`, `"(\\Answered)"`: some servers quote a flag, or all of them.
 * `text` is what stands between the quotes. */
static void
add_quoted_flags(struct buf *flags, const char *text, size_t len)
{
	const char *end = text + len, *p = text, *from;

	if (memchr(text, '(', len) == NULL && memchr(text, ' ', len) != NULL)
		return; /* neither a flag nor a list */
	while (p < end) {
		while (p < end && (*p == ' ' || *p == '(' || *p == ')'))
			p++;
		if (p + 1 < end && *p == '\\' && p[1] == '\\')
			p++; /* an escaped backslash */
		for (from = p; p < end && *p != ' ' && *p != '(' && *p != ')';)
			p++;
		if (p > from)
			add_flag(flags, from, (size_t)(p - from));
	}
}

/* One word of a list, which may be quoted or a list itself; false: the line
 * ended in it. */
static bool
take_flag(struct sanitizer *m, struct scan *s, struct buf *flags)
{
	const char *from = s->p;

	if (*s->p == '(')
		return skip_value(m, s);
	if (*s->p == '"') {
		if (!skip_quoted(s))
			return false;
		add_quoted_flags(flags, from + 1, (size_t)(s->p - from) - 2);
		return true;
	}
	while (s->p < s->end && !is_atom_end(*s->p))
		s->p++;
	add_flag(flags, from, (size_t)(s->p - from));
	return true;
}

static bool
item_flags(struct sanitizer *m, struct scan *s, struct buf *out)
{
	struct buf flags = BUF_INIT;
	bool is_list = s->p < s->end && *s->p == '(', is_whole = true;

	if (s->p == s->end)
		return false;
	if (is_list)
		s->p++;
	do {
		scan_blanks(s);
		if (s->p == s->end)
			is_whole = !is_list;
		else if (*s->p != ')')
			is_whole = take_flag(m, s, &flags);
	} while (is_list && is_whole && *s->p != ')');
	if (is_whole) {
		s->p += is_list;
		begin_item(m, out, "FLAGS (");
		buf_adds(out, buf_str(&flags));
		buf_addc(out, ')');
	}
	buf_release(&flags);
	return is_whole;
}

static bool
item_uid(struct sanitizer *m, struct scan *s, struct buf *out)
{
	uint64_t uid;

	if (!scan_number(s, &uid))
		return skip_value(m, s);
	/* A literal that is too long by a few bytes swallows the end of its
	 * reply and the beginning of the next, whose items then seem to be
	 * ours. */
	if (m->has_body && m->has_uid && uid != m->uid)
		return false;
	if (uid > 0 && uid <= UINT32_MAX) {
		m->has_uid = true;
		m->uid = (uint32_t)uid;
		begin_item(m, out, "UID ");
		buf_addf(out, "%u", (unsigned)uid);
	}
	return true;
}

static bool
item_size(struct sanitizer *m, struct scan *s, struct buf *out)
{
	uint64_t size;

	if (!scan_number(s, &size))
		return skip_value(m, s);
	/* Some write decimals, "12.0": the rest of the word goes. */
	while (s->p < s->end && !is_atom_end(*s->p))
		s->p++;
	begin_item(m, out, "RFC822.SIZE ");
	buf_addf(out, "%u",
	    size > UINT32_MAX ? UINT32_MAX : (unsigned)size);
	return true;
}

/* 0 and -1 say nothing (L077). */
static bool
item_modseq(struct sanitizer *m, struct scan *s, struct buf *out)
{
	const char *from = s->p;
	struct scan inner;
	uint64_t modseq;

	if (!skip_value(m, s))
		return false;
	inner = (struct scan){ .p = from, .end = s->p };
	if (inner.p < inner.end && *inner.p == '(')
		inner.p++;
	scan_blanks(&inner);
	if (scan_number(&inner, &modseq) && modseq > 0 && modseq <= INT64_MAX) {
		begin_item(m, out, "MODSEQ (");
		buf_addf(out, "%llu)", (unsigned long long)modseq);
	}
	return true;
}

/* `" 3-Mar-2026 10:00:00 +0545"`: d digit, x digit or blank, a letter. */
static bool
is_date(const char *p, size_t len)
{
	static const char shape[] = "xd-aaa-dddd dd:dd:dd sdddd";
	size_t i;

	if (len != sizeof(shape) - 1)
		return false;
	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)p[i];

		switch (shape[i]) {
		case 'd':
			if (!isdigit(c))
				return false;
			break;
		case 'x':
			if (!isdigit(c) && c != ' ')
				return false;
			break;
		case 'a':
			if (!isalpha(c))
				return false;
			break;
		case 's':
			if (c != '+' && c != '-')
				return false;
			break;
		default:
			if (c != (unsigned char)shape[i])
				return false;
		}
	}
	return true;
}

static bool
item_date(struct sanitizer *m, struct scan *s, struct buf *out)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	const char *from = s->p;
	size_t i, len;

	if (s->p == s->end || *s->p != '"')
		return skip_value(m, s);
	if (!skip_quoted(s))
		return false;
	len = (size_t)(s->p - from) - 2;
	if (!is_date(from + 1, len))
		return true;
	for (i = 0; i < 12; i++)
		if (strncasecmp(from + 4, months + 3 * i, 3) == 0)
			break;
	if (i < 12) {
		begin_item(m, out, "INTERNALDATE ");
		buf_add(out, from, len + 2);
	}
	return true;
}

/*
 * Returns false when the line ended: either broken, or a literal follows that
 * is the value (m->has_literal is set then).
 */
static bool
item_body(struct sanitizer *m, struct scan *s, const char *name, struct buf *out)
{
	const char *from = s->p;

	if (s->p < s->end && *s->p == '"') {
		if (!skip_quoted(s))
			return false;
		begin_item(m, out, name);
		buf_add(out, from, (size_t)(s->p - from));
		return true;
	}
	if (s->p == s->end) {
		if (!s->has_literal)
			return false;
		if (m->max_body != 0 && m->literal > m->max_body &&
		    m->literal / BODY_SKIPPED_MAX <= m->max_body) {
			/* Its bytes go nowhere; what follows counts. */
			begin_item(m, out, name);
			buf_adds(out, "NIL");
			m->has_body = m->notes.is_too_large = true;
			return false;
		}
		begin_item(m, out, name);
		buf_addf(out, "{%llu}\r\n", (unsigned long long)m->literal);
		m->has_literal = m->keep_literal = m->has_body = true;
		return false;
	}
	/* NIL, or nothing where a string must be (L046). */
	begin_item(m, out, name);
	buf_adds(out, "NIL");
	return *s->p == ')' ? true : skip_value(m, s);
}

/* What may stand behind a body: an item that was asked for, or one that some
 * servers add.  Anything else, a second body above all, is the message's text
 * or another reply. */
static bool
is_known_item(const char *name, size_t len)
{
	static const char *const names[] = { "UID", "FLAGS", "INTERNALDATE",
		"RFC822.SIZE", "MODSEQ", "X-GM-MSGID", "X-GM-THRID",
		"X-GM-LABELS", "EMAILID", "THREADID", "SAVEDATE" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (word_is(name, len, names[i]))
			return true;
	return false;
}

static bool
sanitize_fetch_item(struct sanitizer *m, struct scan *s, const char *name,
    size_t len, struct buf *out)
{
	scan_blanks(s);
	if (word_is(name, len, "UID"))
		return item_uid(m, s, out);
	if (word_is(name, len, "FLAGS"))
		return item_flags(m, s, out);
	if (word_is(name, len, "INTERNALDATE"))
		return item_date(m, s, out);
	if (word_is(name, len, "RFC822.SIZE"))
		return item_size(m, s, out);
	if (word_is(name, len, "MODSEQ"))
		return item_modseq(m, s, out);
	if (word_is(name, len, "BODY[]") ||
	    word_is(name, len, "BODY[HEADER]") ||
	    (len > 7 && strncasecmp(name, "BODY[]<", 7) == 0))
		return item_body(m, s, "BODY[] ", out);
	if (len > 18 && strncasecmp(name, "BODY[HEADER.FIELDS", 18) == 0 &&
	    name[len - 1] == ']')
		return item_body(m, s, "BODY[HEADER] ", out);
	return skip_value(m, s);
}

/* --- the reply ----------------------------------------------------------- */

static enum sanitize_verdict
sanitize_fetch_finish(
    struct sanitizer *m, const struct scan *s, bool is_broken, struct buf *out)
{
	enum sanitize_verdict verdict = sanitize_skip(m, s);
	struct scan rest = *s;

	scan_blanks(&rest);
	/*
	 * A length that is not the body's: what was taken for the body has
	 * bytes of what follows, or lacks some, and so may all that comes
	 * next.  Never a message.
	 */
	if (m->has_body && (is_broken || rest.p + 1 != rest.end ||
		rest.has_literal))
		verdict = SANITIZE_TORN;
	m->has_body = false;
	if (!is_broken) {
		m->has_literal = false;
		m->reply = REPLY_NONE;
	} else if (!m->has_uid)
		m->notes.n_lost_fetches++;
	m->value_depth = 0;
	if (m->has_items)
		buf_adds(out, ")\r\n");
	else
		buf_reset(out); /* the parser takes no empty list */
	m->has_items = false;
	return verdict;
}

enum sanitize_verdict
sanitize_fetch_items(struct sanitizer *m, struct scan *s, struct buf *out)
{
	const char *name;
	size_t len;
	bool is_whole = m->value_depth == 0 || skip_value(m, s);

	m->reply = REPLY_FETCH;
	while (is_whole) {
		scan_blanks(s);
		if (s->p < s->end && *s->p == ')')
			return sanitize_fetch_finish(m, s, false, out);
		if (s->p < s->end && *s->p == '(' && !m->has_body) {
			/* Domino puts ENVELOPE into one more pair (L030). */
			is_whole = skip_value(m, s);
			continue;
		}
		len = take_name(s, &name);
		if (len == 0 || (m->has_body && !is_known_item(name, len)))
			return sanitize_fetch_finish(m, s, true, out);
		is_whole = sanitize_fetch_item(m, s, name, len, out);
	}
	if (m->has_literal) /* the value of BODY[] */
		return SANITIZE_PASS;
	/* A literal inside a value that is skipped. */
	if (s->has_literal && s->p == s->end) {
		m->has_literal = true;
		return SANITIZE_HOLD;
	}
	return sanitize_fetch_finish(m, s, true, out);
}

enum sanitize_verdict
sanitize_fetch_begin(struct sanitizer *m, struct scan *s, uint32_t number,
    struct buf *out)
{
	m->has_items = m->has_uid = m->has_body = false;
	m->value_depth = 0;
	scan_blanks(s);
	if (s->p == s->end || *s->p != '(') {
		m->notes.n_lost_fetches++;
		return sanitize_skip(m, s);
	}
	s->p++;
	buf_addf(out, "* %u FETCH (", (unsigned)number);
	return sanitize_fetch_items(m, s, out);
}
