/*
 * subject.c - what a conversation is called.
 *
 * Runs in: children that parse.  Never blocks.
 */
#include "mime/subject.h"

#include "base/text.h"

#include <ctype.h>
#include <glib.h>
#include <stdbool.h>

#include "mime/subject_prefixes.h"

/* Blanks of any width, and marks of direction, which nobody sees. */
static const char *
subject_skip_blanks(const char *p)
{
	static const char *const invisible[] = { "\u00a0", "\u3000", "\u200b",
		"\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u2067",
		"\u2069", "\ufeff" };
	size_t i, len;

	for (;;) {
		while (*p == ' ' || *p == '\t')
			p++;
		if ((unsigned char)*p < 0x80)
			return p;
		for (i = 0; i < sizeof(invisible) / sizeof(*invisible); i++) {
			len = strlen(invisible[i]);
			if (strncmp(p, invisible[i], len) == 0)
				break;
		}
		if (i == sizeof(invisible) / sizeof(*invisible))
			return p;
		p += len;
	}
}

/* Behind ':' or its wide forms; NULL: there is none. */
static const char *
subject_skip_colon(const char *p)
{
	static const char *const colons[] = { ":", "：", "﹕", "︰" };
	size_t i, len;

	for (i = 0; i < sizeof(colons) / sizeof(colons[0]); i++) {
		len = strlen(colons[i]);
		if (strncmp(p, colons[i], len) == 0)
			return p + len;
	}
	return NULL;
}

/* A count as in Re[2]: Re(2): Re^2: Re*2: Re2: */
static const char *
subject_skip_count(const char *p)
{
	const char *q = subject_skip_blanks(p);

	if (*q == '[' || *q == '(' || *q == '^' || *q == '*')
		q++;
	if (*q < '0' || *q > '9')
		return p;
	while (*q >= '0' && *q <= '9')
		q++;
	if (*q == ']' || *q == ')')
		q++;
	return q;
}

static const struct prefix *
subject_find_prefix(const char *word)
{
	size_t i;

	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strcmp(prefixes[i].text, word) == 0)
			return &prefixes[i];
	return NULL;
}

/* What stands before the colon, in small letters, is looked up. */
static const char *
subject_skip_prefix(const char *p, bool *is_reply)
{
	char word[sizeof(prefixes[0].text)];
	const struct prefix *prefix;
	const char *q, *behind;
	size_t n = 0;
	unsigned len;

	for (q = p;; q += len) {
		behind = isalpha((unsigned char)*q) ? NULL
		    : subject_skip_colon(subject_skip_blanks(
		    subject_skip_count(q)));
		if (behind != NULL && n > 0)
			break;
		len = text_utf8_char((const unsigned char *)q, strnlen(q, 4));
		if (len == 0 || n + 5 > sizeof(word))
			return NULL;
		n += text_encode(word + n, g_unichar_tolower(text_code(
		    (const unsigned char *)q, len)));
	}
	word[n] = '\0';
	if ((prefix = subject_find_prefix(word)) == NULL)
		return NULL;
	*is_reply |= prefix->is_reply;
	return behind;
}

/* Behind "[tag]" when something follows it. */
static const char *
subject_skip_blob(const char *p)
{
	const char *q;

	if (*p != '[')
		return NULL;
	q = p + strcspn(p + 1, "[]") + 1;
	if (*q != ']' || *subject_skip_blanks(q + 1) == '\0')
		return NULL;
	return q + 1;
}

static char *
subject_one_blank_each(struct arena *arena, const char *p)
{
	char *out = arena_alloc(arena, strlen(p) + 1);
	size_t n = 0;

	for (; *p != '\0'; p++) {
		if (*p == ' ' || *p == '\t') {
			if (n > 0 && out[n - 1] != ' ')
				out[n++] = ' ';
		} else {
			out[n++] = *p;
		}
	}
	while (n > 0 && out[n - 1] == ' ')
		n--;
	out[n] = '\0';
	return out;
}

/* "[Fwd: subject]" up to `end`: RFC 5256 2.1, as Netscape wrote it. */
static char *
subject_skip_wrap(char *p, char **end)
{
	if (*end - p < 6 || strncasecmp(p, "[fwd:", 5) != 0 ||
	    (*end)[-1] != ']')
		return p;
	*--*end = '\0';
	return p + 5 + (p[5] == ' ');
}

static void
subject_cut_forward_mark(char *base)
{
	size_t n = strlen(base);

	while (n >= 5 && strcasecmp(base + n - 5, "(fwd)") == 0) {
		for (n -= 5; n > 0 && base[n - 1] == ' '; n--)
			;
		base[n] = '\0';
	}
}

const char *
subject_base(struct arena *arena, const char *subject, bool *is_reply_r)
{
	char *base = subject_one_blank_each(arena, subject);
	const char *next;
	char *end;

	*is_reply_r = false;
	subject_cut_forward_mark(base);
	end = base + strlen(base);
	for (;; base += subject_skip_blanks(next) - base) {
		base = subject_skip_wrap(base, &end);
		if ((next = subject_skip_prefix(base, is_reply_r)) == NULL &&
		    (next = subject_skip_blob(base)) == NULL)
			return base;
	}
}
