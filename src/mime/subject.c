/*
 * subject.c - what a conversation is called.
 *
 * Runs in: children that parse.  Never blocks.
 */
#include "mime/subject.h"

static const struct prefix {
	const char *text; /* lower case where that is ASCII */
	bool is_reply;
} prefixes[] = {
	{ "re", true }, { "aw", true }, { "antw", true }, { "antwort", true },
	{ "sv", true }, { "vs", true }, { "ref", true }, { "rif", true },
	{ "res", true }, { "rv", true }, { "r", true }, { "odp", true },
	{ "ynt", true }, { "atb", true }, { "bls", true }, { "vá", true },
	{ "回复", true }, { "回覆", true }, { "答复", true }, { "答覆", true },
	{ "返信", true }, { "회신", true }, { "답장", true }, { "ответ", true },
	{ "Ответ", true }, { "απ", true }, { "ΑΠ", true }, { "ΣΧΕΤ", true },
	{ "تر", true }, { "رد", true }, { "תשובה", true }, { "השב", true },
	{ "fw", false }, { "fwd", false }, { "wg", false }, { "tr", false },
	{ "i", false }, { "enc", false }, { "pd", false }, { "vl", false },
	{ "ilt", false }, { "doorst", false }, { "rvf", false },
	{ "转发", false }, { "轉寄", false }, { "轉發", false },
	{ "転送", false }, { "전달", false }, { "Пересл", false },
	{ "ΠΡΘ", false }, { "העברה", false }, { "إعادة توجيه", false },
};

static const char *
skip_blanks(const char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

/* Behind ':' or its full-width form; NULL: there is none. */
static const char *
skip_colon(const char *p)
{
	if (*p == ':')
		return p + 1;
	return strncmp(p, "\xEF\xBC\x9A", 3) == 0 ? p + 3 : NULL;
}

/* A count as in Re[2]: Re(2): Re^2: Re*2: Re2: */
static const char *
skip_count(const char *p)
{
	const char *q = skip_blanks(p);

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

static const char *
skip_prefix(const char *p, bool *is_reply)
{
	const char *q;
	size_t i, len;

	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		len = strlen(prefixes[i].text);
		if (strncasecmp(p, prefixes[i].text, len) != 0)
			continue;
		q = skip_colon(skip_blanks(skip_count(p + len)));
		if (q == NULL)
			continue;
		*is_reply |= prefixes[i].is_reply;
		return q;
	}
	return NULL;
}

/* Behind "[tag]" when something follows it. */
static const char *
skip_blob(const char *p)
{
	const char *q;

	if (*p != '[')
		return NULL;
	q = p + strcspn(p + 1, "[]") + 1;
	if (*q != ']' || *skip_blanks(q + 1) == '\0')
		return NULL;
	return q + 1;
}

static char *
one_blank_each(struct arena *arena, const char *p)
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

static void
cut_forward_mark(char *base)
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
	char *base = one_blank_each(arena, subject);
	const char *p, *next;

	*is_reply_r = false;
	cut_forward_mark(base);
	for (p = base;; p = skip_blanks(next)) {
		if ((next = skip_prefix(p, is_reply_r)) == NULL &&
		    (next = skip_blob(p)) == NULL)
			return p;
	}
}
