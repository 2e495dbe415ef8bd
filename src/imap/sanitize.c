/*
 * sanitize.c - what servers send, made fit for the parser.
 *
 * Runs in: hot, pool and job children.  Never blocks.
 *
 * Of an untagged line only the kinds we use are passed on: OK NO BAD, LIST,
 * STATUS, EXISTS, EXPUNGE, VANISHED and FETCH.  LIST, STATUS and FETCH are
 * written anew with the items we ask for (sanitize_fetch.c); a response code
 * passes only when it is plain.  No recursion: depth is a counter, so nesting
 * costs nothing (L038).
 */
#include "imap/sanitize.h"

#include "base/text.h"
#include "imap/sanitize_private.h"

#include <strings.h>

void
sanitize_init(struct sanitizer *m)
{
	memset(m, 0, sizeof(*m));
}

void
sanitize_release(struct sanitizer *m)
{
	buf_release(&m->notes.capability);
}

/* --- scanning ------------------------------------------------------------ */

void
scan_blanks(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
		s->p++;
}

size_t
scan_word(struct scan *s, const char **word_r)
{
	const char *from = s->p;

	while (s->p < s->end && *s->p != ' ' && *s->p != '\t')
		s->p++;
	*word_r = from;
	return (size_t)(s->p - from);
}

bool
word_is(const char *word, size_t len, const char *expected)
{
	return strlen(expected) == len &&
	    strncasecmp(word, expected, len) == 0;
}

bool
scan_number(struct scan *s, uint64_t *number_r)
{
	uint64_t v = 0;
	const char *from = s->p;

	for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
		unsigned digit = (unsigned)(*s->p - '0');

		v = v > (UINT64_MAX - digit) / 10 ? UINT64_MAX :
						    v * 10 + digit;
	}
	*number_r = v;
	return s->p > from;
}

/*
 * "{123}" or "{123+}" at the end of a line.  `at_r`: where it begins; a "~" of
 * literal8 before it belongs to it.
 */
static bool
find_literal(const char *line, size_t len, size_t *at_r, uint64_t *size_r)
{
	struct scan s;
	size_t i = len;

	if (len < 3 || line[len - 1] != '}')
		return false;
	i--;
	if (line[i - 1] == '+')
		i--;
	while (i > 0 && line[i - 1] >= '0' && line[i - 1] <= '9')
		i--;
	if (i == 0 || line[i - 1] != '{')
		return false;
	s = (struct scan){ .p = line + i, .end = line + len };
	if (!scan_number(&s, size_r))
		return false;
	i--;
	*at_r = i > 0 && line[i - 1] == '~' ? i - 1 : i;
	return true;
}

/* --- single lines -------------------------------------------------------- */

static void
keep_words(struct sanitizer *m, const char *text, size_t len)
{
	struct buf words = BUF_INIT;

	mask_add(&words, m->mask, text, len);
	text_clean_line(m->notes.last_words, sizeof(m->notes.last_words),
	    words.data, words.len);
	buf_release(&words);
}

static void
note_capability(struct sanitizer *m, const char *p, const char *end)
{
	struct buf *words = &m->notes.capability;
	struct scan s = { .p = p, .end = end };
	const char *word;
	size_t i, len;

	buf_reset(words);
	for (scan_blanks(&s); s.p < s.end; scan_blanks(&s)) {
		len = scan_word(&s, &word);
		if (words->len > 0)
			buf_addc(words, ' ');
		/* Proton Bridge puts one word in quotes. */
		for (i = 0; i < len; i++)
			if (word[i] > ' ' && word[i] < 0x7F && word[i] != '"')
				buf_addc(words, word[i]);
	}
	m->notes.has_capability = true;
}

static void
note_enabled(struct sanitizer *m, struct scan *s)
{
	const char *word;
	size_t len;

	m->notes.has_enabled = true;
	for (scan_blanks(s); s->p < s->end; scan_blanks(s)) {
		len = scan_word(s, &word);
		if (word_is(word, len, "QRESYNC"))
			m->notes.enabled_qresync = true;
		if (word_is(word, len, "CONDSTORE"))
			m->notes.enabled_condstore = true;
	}
}

/* Digits, commas, colons and blanks only. */
static bool
sanitize_is_set(const char *p, const char *end)
{
	bool has_digit = false;

	for (; p < end; p++) {
		if (*p >= '0' && *p <= '9')
			has_digit = true;
		else if (*p != ',' && *p != ':' && *p != ' ')
			return false;
	}
	return has_digit;
}

static bool
is_code_plain(const char *p, const char *end)
{
	static const char *const numeric[] = { "UIDVALIDITY", "UIDNEXT",
		"HIGHESTMODSEQ" };
	static const char *const bare[] = { "READ-ONLY", "READ-WRITE",
		"NOMODSEQ", "CLOSED", "TRYCREATE" };
	struct scan s = { .p = p, .end = end };
	uint64_t number, limit;
	const char *word;
	size_t i, len;

	len = scan_word(&s, &word);
	scan_blanks(&s);
	for (i = 0; i < sizeof(bare) / sizeof(bare[0]); i++)
		if (word_is(word, len, bare[i]))
			return s.p == s.end;
	for (i = 0; i < sizeof(numeric) / sizeof(numeric[0]); i++) {
		if (!word_is(word, len, numeric[i]))
			continue;
		limit = i == 2 ? INT64_MAX : UINT32_MAX;
		if (!scan_number(&s, &number) || number > limit)
			return false;
		scan_blanks(&s);
		return s.p == s.end;
	}
	if (word_is(word, len, "COPYUID") || word_is(word, len, "APPENDUID") ||
	    word_is(word, len, "MODIFIED"))
		return sanitize_is_set(s.p, s.end);
	return false;
}

static bool
is_code_word(const char *p, const char *end)
{
	for (; p < end; p++)
		if (!(*p >= 'A' && *p <= 'Z') && *p != '-')
			return false;
	return true;
}

/*
 * "OK [CODE] text" after its star or tag.  A code that is not plain loses its
 * bracket, "(CODE] text", and so becomes text to the parser; command.c turns
 * it back for people.  `s` stands behind the word.
 */
static void
sanitize_add_state(struct sanitizer *m, struct scan *s, const char *word,
    size_t word_len, bool is_failure, struct buf *out)
{
	const char *close;
	bool is_plain = false;
	size_t from;

	buf_add(out, word, word_len);
	buf_addc(out, ' ');
	scan_blanks(s);
	if (s->p < s->end && *s->p == '[') {
		close = memchr(s->p, ']', (size_t)(s->end - s->p));
		if (close != NULL) {
			struct scan code = { .p = s->p + 1, .end = close };
			const char *name;
			size_t len = scan_word(&code, &name);

			if (word_is(name, len, "CAPABILITY"))
				note_capability(m, code.p, close);
			is_plain = !is_failure &&
			    is_code_plain(s->p + 1, close);
		}
		buf_addc(out, is_plain ? '[' : '(');
		s->p++;
		/* A code is for programs, and tells no secret. */
		if (close != NULL &&
		    (is_plain || is_code_word(s->p, close))) {
			buf_add(out, s->p, (size_t)(close - s->p));
			s->p = close;
		}
	}
	from = out->len;
	mask_add(out, m->mask, s->p, (size_t)(s->end - s->p));
	for (; from < out->len; from++)
		if ((unsigned char)out->data[from] < ' ')
			out->data[from] = '?';
	if (s->p == s->end)
		buf_addc(out, '-'); /* the parser wants some text */
	buf_adds(out, "\r\n");
}

static bool
is_state(const char *word, size_t len)
{
	return word_is(word, len, "OK") || word_is(word, len, "NO") ||
	    word_is(word, len, "BAD");
}

/* "* 5 EXISTS": a number comes first. */
static enum sanitize_verdict
sanitize_numbered(struct sanitizer *m, struct scan *s, struct buf *out)
{
	uint64_t number = 0;
	const char *word;
	size_t len;

	scan_number(s, &number);
	scan_blanks(s);
	len = scan_word(s, &word);
	if (number > UINT32_MAX)
		return sanitize_skip(m, s);
	if (word_is(word, len, "EXISTS"))
		buf_addf(out, "* %u EXISTS\r\n", (unsigned)number);
	else if (word_is(word, len, "EXPUNGE") && number > 0)
		buf_addf(out, "* %u EXPUNGE\r\n", (unsigned)number);
	else if (word_is(word, len, "FETCH") && number > 0)
		return sanitize_fetch_begin(m, s, (uint32_t)number, out);
	else
		return sanitize_skip(m, s); /* RECENT; "* 0 FETCH" (L031) */
	return SANITIZE_PASS;
}

static enum sanitize_verdict
sanitize_vanished(struct sanitizer *m, struct scan *s, struct buf *out)
{
	static const char earlier[] = "(EARLIER)";
	bool is_earlier = false;
	const char *end;

	scan_blanks(s);
	if ((size_t)(s->end - s->p) > sizeof(earlier) - 1 &&
	    strncasecmp(s->p, earlier, sizeof(earlier) - 1) == 0) {
		is_earlier = true;
		s->p += sizeof(earlier) - 1;
		scan_blanks(s);
	}
	for (end = s->p; end < s->end && *end != ' '; end++)
		;
	if (!sanitize_is_set(s->p, end))
		return sanitize_skip(m, s);
	buf_adds(out, is_earlier ? "* VANISHED (EARLIER) " : "* VANISHED ");
	buf_add(out, s->p, (size_t)(end - s->p));
	buf_adds(out, "\r\n");
	return SANITIZE_PASS;
}

/* Leaves the rest of a reply out, with whatever literals it has. */
enum sanitize_verdict
sanitize_skip(struct sanitizer *m, const struct scan *s)
{
	m->reply = s->has_literal ? REPLY_SKIPPED : REPLY_NONE;
	m->has_literal = s->has_literal;
	m->keep_literal = false;
	return SANITIZE_PASS;
}

static enum sanitize_verdict
sanitize_untagged(struct sanitizer *m, struct scan *s, struct buf *out)
{
	const char *word;
	size_t len;

	scan_blanks(s);
	if (s->p < s->end && *s->p >= '0' && *s->p <= '9')
		return sanitize_numbered(m, s, out);
	if (s->p < s->end && *s->p == '[') { /* L042: OK is missing */
		buf_adds(out, "* ");
		sanitize_add_state(m, s, "OK", 2, false, out);
		return SANITIZE_PASS;
	}
	len = scan_word(s, &word);
	if (is_state(word, len)) {
		buf_adds(out, "* ");
		sanitize_add_state(m, s, word, len, false, out);
		return SANITIZE_PASS;
	}
	if (word_is(word, len, "BYE")) {
		scan_blanks(s);
		keep_words(m, s->p, (size_t)(s->end - s->p));
		return SANITIZE_BYE;
	}
	if (word_is(word, len, "PREAUTH")) { /* a greeting only */
		buf_adds(out, "* ");
		sanitize_add_state(m, s, word, len, false, out);
		return SANITIZE_PASS;
	}
	if (word_is(word, len, "VANISHED"))
		return sanitize_vanished(m, s, out);
	if (word_is(word, len, "LIST") || word_is(word, len, "XLIST"))
		return sanitize_list(m, s, out);
	if (word_is(word, len, "STATUS"))
		return sanitize_status_begin(m, s, out);
	if (word_is(word, len, "CAPABILITY"))
		note_capability(m, s->p, s->end);
	else if (word_is(word, len, "ENABLED"))
		note_enabled(m, s);
	return sanitize_skip(m, s);
}

static bool
sanitize_tagged(struct sanitizer *m, struct scan *s, struct buf *out)
{
	const char *tag = s->p, *word;
	size_t tag_len, len;
	uint64_t number;

	if (!scan_number(s, &number))
		return false;
	tag_len = (size_t)(s->p - tag);
	scan_blanks(s);
	len = scan_word(s, &word);
	if (!is_state(word, len))
		return false;
	if (number <= m->last_tag)
		return true; /* answered before: nobody waits for it */
	m->last_tag = number;
	buf_add(out, tag, tag_len);
	buf_addc(out, ' ');
	sanitize_add_state(m, s, word, len, !word_is(word, len, "OK"), out);
	return true;
}

static enum sanitize_verdict
new_reply(struct sanitizer *m, const char *line, size_t len, struct scan *s,
    struct buf *out)
{
	/* A status line has no literals, whatever its text ends with. */
	struct scan whole = { .p = line, .end = line + len };
	const char *word;
	size_t word_len;

	if (len == 0)
		return SANITIZE_PASS;
	if (line[0] == '+') {
		buf_adds(out, "+ ");
		whole.p++;
		scan_blanks(&whole);
		buf_add(out, whole.p, (size_t)(whole.end - whole.p));
		buf_adds(out, whole.p == whole.end ? "-\r\n" : "\r\n");
		return SANITIZE_PASS;
	}
	if (line[0] == '*') {
		struct scan peek = { .p = line + 1, .end = line + len };

		scan_blanks(&peek);
		word_len = scan_word(&peek, &word);
		if (is_state(word, word_len) ||
		    word_is(word, word_len, "BYE") ||
		    word_is(word, word_len, "PREAUTH") ||
		    (word_len > 0 && word[0] == '['))
			*s = whole;
		s->p++;
		return sanitize_untagged(m, s, out);
	}
	if (sanitize_tagged(m, &whole, out))
		return SANITIZE_PASS;
	keep_words(m, line, len);
	return SANITIZE_STRAY;
}

enum sanitize_verdict
sanitize_line(struct sanitizer *m, const char *line, size_t len, struct buf *out)
{
	struct scan s;
	size_t at = 0;

	if (len > 0 && line[len - 1] == '\n')
		len--;
	while (len > 0 && line[len - 1] == '\r')
		len--;
	m->literal = 0;
	s = (struct scan){ .p = line, .end = line + len };
	s.has_literal = find_literal(line, len, &at, &m->literal);
	if (s.has_literal)
		s.end = line + at;
	m->has_literal = false;
	m->keep_literal = false;
	switch (m->reply) {
	case REPLY_NONE:
		return new_reply(m, line, len, &s, out);
	case REPLY_SKIPPED:
		return sanitize_skip(m, &s);
	case REPLY_LIST: /* behind the name: CHILDINFO and the like */
		buf_adds(out, "\r\n");
		return sanitize_skip(m, &s);
	case REPLY_STATUS:
		return sanitize_status_items(m, &s, out);
	case REPLY_FETCH:
		return sanitize_fetch_items(m, &s, out);
	}
	return SANITIZE_PASS;
}
