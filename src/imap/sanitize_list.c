/*
 * sanitize_list.c - LIST and STATUS lines in their plainest spelling.
 *
 * Runs in: hot, pool and job children.  Never blocks.
 *
 * A folder name keeps its bytes, whatever way it was written: quoted, literal,
 * or bare with blanks and brackets in it (L056, L061, Exchange).  What stands
 * behind the name is left out.
 */
#include "imap/sanitize_private.h"

#include <ctype.h>
#include <strings.h>

#define NAME_MAX_BYTES 4096

static void
sanitize_list_add_quoted(struct buf *out, const char *p, size_t len)
{
	size_t i;

	buf_addc(out, '"');
	for (i = 0; i < len; i++) {
		if (p[i] == '"' || p[i] == '\\')
			buf_addc(out, '\\');
		buf_addc(out, p[i]);
	}
	buf_addc(out, '"');
}

/* `s` at the opening quote; false: never closed. */
static bool
take_quoted(struct scan *s, struct buf *text)
{
	for (s->p++; s->p < s->end; s->p++) {
		if (*s->p == '"') {
			s->p++;
			return true;
		}
		if (*s->p == '\\' && s->p + 1 < s->end &&
		    (s->p[1] == '"' || s->p[1] == '\\'))
			s->p++;
		buf_addc(text, *s->p);
	}
	return false;
}

/* "(\Sent \HasChildren)" without what is no flag. */
static bool
add_flags(struct scan *s, struct buf *out)
{
	bool is_first = true;

	scan_blanks(s);
	if (s->p == s->end || *s->p != '(')
		return false;
	s->p++;
	buf_addc(out, '(');
	for (;;) {
		const char *from;
		size_t i, len;

		scan_blanks(s);
		if (s->p == s->end)
			return false;
		if (*s->p == ')')
			break;
		from = s->p++;
		while (s->p < s->end && *s->p != ' ' && *s->p != ')')
			s->p++;
		len = (size_t)(s->p - from);
		for (i = 1; i < len; i++)
			if (strchr("abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789-_.", from[i]) == NULL ||
			    from[i] == '\0')
				break;
		if (*from != '\\' || len < 2 || i < len)
			continue;
		if (!is_first)
			buf_addc(out, ' ');
		is_first = false;
		buf_add(out, from, len);
	}
	s->p++;
	buf_addc(out, ')');
	return true;
}

static bool
add_delimiter(struct scan *s, struct buf *out)
{
	struct buf text = BUF_INIT;
	const char *word;
	bool is_fine = true;
	size_t len;

	scan_blanks(s);
	if (s->p < s->end && *s->p == '"')
		is_fine = take_quoted(s, &text);
	else {
		len = scan_word(s, &word);
		if (!word_is(word, len, "NIL"))
			buf_add(&text, word, len);
		is_fine = len > 0;
	}
	if (text.len > 1)
		is_fine = false;
	else if (text.len == 1 && !isprint((unsigned char)text.data[0]))
		buf_reset(&text); /* it separates nothing */
	buf_addc(out, ' ');
	if (text.len == 0)
		buf_adds(out, "NIL");
	else
		sanitize_list_add_quoted(out, text.data, text.len);
	buf_addc(out, ' ');
	buf_release(&text);
	return is_fine;
}

/* A bare name: all up to the end, or up to extended data ` ("CHILDINFO"`. */
static void
take_bare(struct scan *s, struct buf *name)
{
	const char *from = s->p, *end = s->end, *p;

	for (p = from; p + 2 < end; p++)
		if (p[0] == ' ' && p[1] == '(' && p[2] == '"') {
			end = p;
			break;
		}
	while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	buf_add(name, from, (size_t)(end - from));
	s->p = s->end;
}

static bool
add_name(struct sanitizer *m, struct scan *s, struct buf *out)
{
	struct buf name = BUF_INIT;
	bool is_fine = true;

	scan_blanks(s);
	if (s->p == s->end) {
		if (!s->has_literal || m->literal > NAME_MAX_BYTES)
			return false;
		buf_addf(out, "{%u}\r\n", (unsigned)m->literal);
		m->reply = REPLY_LIST;
		m->has_literal = m->keep_literal = true;
		return true;
	}
	if (*s->p == '"')
		is_fine = take_quoted(s, &name);
	else
		take_bare(s, &name);
	/* No command could name it. */
	if (memchr(buf_str(&name), '\0', name.len) != NULL ||
	    memchr(buf_str(&name), '\r', name.len) != NULL ||
	    name.len > NAME_MAX_BYTES)
		is_fine = false;
	if (is_fine) {
		sanitize_list_add_quoted(out, buf_str(&name), name.len);
		buf_adds(out, "\r\n");
	}
	buf_release(&name);
	return is_fine;
}

enum sanitize_verdict
sanitize_list(struct sanitizer *m, struct scan *s, struct buf *out)
{
	size_t before = out->len;
	enum sanitize_verdict verdict;

	buf_adds(out, "* LIST ");
	if (!add_flags(s, out) || !add_delimiter(s, out) ||
	    !add_name(m, s, out)) {
		out->len = before;
		out->data[before] = '\0';
		m->notes.n_broken_lists++;
		return sanitize_skip(m, s);
	}
	if (m->has_literal)
		return SANITIZE_PASS;
	verdict = sanitize_skip(m, s); /* extended data may hold literals */
	return verdict;
}

#define OBJECT_ID_MAX 255

/* --- STATUS -------------------------------------------------------------- */

/* The name is never looked at (replies are told apart by their tag). */
enum sanitize_verdict
sanitize_status_begin(struct sanitizer *m, struct scan *s, struct buf *out)
{
	struct buf name = BUF_INIT;
	const char *p;
	unsigned depth = 0;
	bool is_fine = true;

	scan_blanks(s);
	if (s->p == s->end && s->has_literal) {
		m->reply = REPLY_STATUS;
		m->has_literal = true;
		return SANITIZE_HOLD;
	}
	if (s->p < s->end && *s->p == '"') {
		is_fine = take_quoted(s, &name);
		buf_release(&name);
	} else {
		/* A bare name may hold blanks: find the last list. */
		for (p = s->end; p > s->p; p--) {
			if (p[-1] == ')')
				depth++;
			else if (p[-1] == '(' && depth > 0 && --depth == 0)
				break;
		}
		if (p > s->p)
			s->p = p - 1;
		else
			is_fine = false;
	}
	return is_fine ? sanitize_status_items(m, s, out) : sanitize_skip(m, s);
}

static void
add_status_item(struct buf *out, const char *name, size_t len, uint64_t value)
{
	static const struct {
		const char *name;
		uint64_t max;
	} known[] = {
		{ "MESSAGES", UINT32_MAX },
		{ "UIDNEXT", UINT32_MAX },
		{ "UIDVALIDITY", UINT32_MAX },
		{ "HIGHESTMODSEQ", INT64_MAX },
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (word_is(name, len, known[i].name) && value <= known[i].max)
			buf_addf(out, "%s%s %llu",
			    out->len > 0 && out->data[out->len - 1] != '(' ?
				" " : "",
			    known[i].name, (unsigned long long)value);
}

/* "(F1)" of MAILBOXID and the like. */
static void
skip_status_value(struct scan *s)
{
	unsigned depth = 0;

	for (; s->p < s->end; s->p++) {
		if (*s->p == '(')
			depth++;
		else if (*s->p == ')' && depth == 0)
			break;
		else if (*s->p == ')' && --depth == 0) {
			s->p++;
			break;
		} else if (*s->p == ' ' && depth == 0)
			break;
	}
}

/* " MAILBOXID (F2212ea87-6097)": letters, digits, "_" and "-" (RFC 8474). */
static void
add_object_id(struct buf *out, const struct scan *s)
{
	const char *p = s->p + 1;
	size_t n = 0;

	while (n < OBJECT_ID_MAX && p + n < s->end &&
	    (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '-'))
		n++;
	if (n > 0 && p + n < s->end && p[n] == ')')
		buf_addf(out, "%sMAILBOXID (%.*s)",
		    out->data[out->len - 1] != '(' ? " " : "", (int)n, p);
}

enum sanitize_verdict
sanitize_status_items(struct sanitizer *m, struct scan *s, struct buf *out)
{
	const char *name;
	uint64_t value;
	size_t len;

	buf_adds(out, "* STATUS x (");
	scan_blanks(s);
	if (s->p < s->end && *s->p == '(')
		s->p++;
	for (;;) {
		scan_blanks(s);
		for (name = s->p; s->p < s->end && *s->p != ' ' &&
		     *s->p != ')' && *s->p != '('; s->p++)
			;
		len = (size_t)(s->p - name);
		if (s->p == s->end || *s->p == ')')
			break;
		scan_blanks(s);
		if (scan_number(s, &value))
			add_status_item(out, name, len, value);
		else {
			if (*s->p == '(' && word_is(name, len, "MAILBOXID"))
				add_object_id(out, s);
			skip_status_value(s);
		}
	}
	buf_adds(out, ")\r\n");
	return sanitize_skip(m, s);
}
