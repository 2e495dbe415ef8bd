/*
 * html.c - the text of an HTML part, and what it refers to.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * A scanner, no parser: text for search and a snippet need no tree, and a tree
 * costs three times as much.  Nothing is rendered, so nothing can be injected.
 */
#include "config.h"

#include "mime/html.h"

#include "base/text.h"
#include "mime/decode.h"
#include "mime/entity.h"

#include <ctype.h>

enum gap { GAP_NONE, GAP_BLANK, GAP_LINE, GAP_PARAGRAPH };

struct scanner {
	const char *p, *end;
	struct buf *out;
	size_t start, max; /* of out: ours begins there, and ends at most */
	enum gap gap;	   /* due before the next character */
	unsigned pre;	   /* inside of <pre> */
};

/* What a tag means for the text; those not listed mean nothing. */
static const struct tag {
	const char *name;
	enum gap gap;
	bool is_skipped; /* with all up to its end tag */
} tags[] = {
	{ "br", GAP_LINE, false }, { "p", GAP_PARAGRAPH, false },
	{ "div", GAP_LINE, false }, { "td", GAP_BLANK, false },
	{ "th", GAP_BLANK, false }, { "tr", GAP_LINE, false },
	{ "li", GAP_LINE, false }, { "table", GAP_LINE, false },
	{ "style", GAP_LINE, true }, { "script", GAP_LINE, true },
	{ "title", GAP_LINE, true }, { "h1", GAP_PARAGRAPH, false },
	{ "h2", GAP_PARAGRAPH, false }, { "h3", GAP_PARAGRAPH, false },
	{ "h4", GAP_PARAGRAPH, false }, { "h5", GAP_PARAGRAPH, false },
	{ "h6", GAP_PARAGRAPH, false }, { "ul", GAP_LINE, false },
	{ "ol", GAP_LINE, false }, { "dl", GAP_LINE, false },
	{ "dt", GAP_LINE, false }, { "dd", GAP_LINE, false },
	{ "hr", GAP_LINE, false }, { "pre", GAP_LINE, false },
	{ "blockquote", GAP_LINE, false }, { "center", GAP_LINE, false },
	{ "section", GAP_LINE, false }, { "article", GAP_LINE, false },
	{ "header", GAP_LINE, false }, { "footer", GAP_LINE, false },
	{ "form", GAP_LINE, false }, { "body", GAP_LINE, false },
	{ "option", GAP_LINE, false }, { "address", GAP_LINE, false },
	{ "template", GAP_NONE, true }, { "svg", GAP_NONE, true },
};

static void
raise_gap(struct scanner *s, enum gap gap)
{
	if (gap > s->gap)
		s->gap = gap;
}

static void
write_gap(struct scanner *s)
{
	if (s->gap != GAP_NONE && s->out->len > s->start)
		buf_add(s->out, s->gap == GAP_PARAGRAPH ? "\n\n" :
		    s->gap == GAP_LINE ? "\n" : " ",
		    s->gap == GAP_PARAGRAPH ? 2 : 1);
	s->gap = GAP_NONE;
}

static void
put(struct scanner *s, const char *p, size_t len)
{
	if (s->gap != GAP_NONE)
		write_gap(s);
	buf_add(s->out, p, len);
}

/* Characters that take no room, as used to hide or pad text. */
static bool
is_invisible(unsigned code)
{
	return code == 0xAD || code == 0x034F || code == 0x200B ||
	    code == 0x200C || code == 0x2060 || code == 0xFEFF ||
	    (code >= 0x200E && code <= 0x200F) ||
	    (code >= 0x202A && code <= 0x202E);
}

static bool
is_space(unsigned code)
{
	return code == ' ' || (code >= '\t' && code <= '\r') ||
	    code == 0xA0 || (code >= 0x2000 && code <= 0x200A) ||
	    code == 0x2028 || code == 0x2029 || code == 0x202F;
}

static void
put_code(struct scanner *s, unsigned code)
{
	char utf8[4];

	if (is_space(code))
		raise_gap(s, GAP_BLANK);
	else if (code >= 0x20 && code != 0x7F && !is_invisible(code))
		put(s, utf8, text_encode(utf8, code));
}

/* --- tags ---------------------------------------------------------------- */

static const struct tag *
find_tag(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (len > 0 && tags[i].name[0] == (name[0] | 0x20) &&
		    strncasecmp(tags[i].name, name, len) == 0 &&
		    tags[i].name[len] == '\0')
			return &tags[i];
	return NULL;
}

/* Behind the '>' of a tag; quotes may hold one. */
static const char *
tag_end(const char *p, const char *end)
{
	const char *gt = memchr(p, '>', (size_t)(end - p)), *q = p, *close;

	/* Quotes count only when they close again before the next '<'. */
	while (gt != NULL) {
		while (q < gt && *q != '"' && *q != '\'')
			q++;
		if (q >= gt || q[-1] != '=')
			return gt + 1;
		close = memchr(q + 1, *q, (size_t)(end - q - 1));
		if (close == NULL || close < gt ||
		    memchr(gt, '<', (size_t)(close - gt)) != NULL) {
			if (close == NULL || close > gt)
				return gt + 1;
			q = close + 1;
			continue;
		}
		q = close + 1;
		gt = memchr(q, '>', (size_t)(end - q));
	}
	return end;
}

/* To "</name", or the end of the text. */
static void
skip_element(struct scanner *s, const char *name)
{
	size_t len = strlen(name);
	const char *p = s->p;

	while ((p = memchr(p, '<', (size_t)(s->end - p))) != NULL) {
		if ((size_t)(s->end - p) > len + 2 && p[1] == '/' &&
		    strncasecmp(p + 2, name, len) == 0) {
			s->p = p;
			return;
		}
		p++;
	}
	s->p = s->end;
}

static void
skip_comment(struct scanner *s)
{
	const char *end = memmem(s->p, (size_t)(s->end - s->p), "-->", 3);

	s->p = end == NULL ? s->end : end + 3;
}

static void
read_tag(struct scanner *s)
{
	const char *p = s->p + 1, *name;
	const struct tag *tag;
	bool is_end = p < s->end && *p == '/';
	size_t len = 0;

	if (s->end - p >= 3 && memcmp(p, "!--", 3) == 0) {
		s->p = p + 1;
		skip_comment(s);
		return;
	}
	name = p + is_end;
	while (name + len < s->end && isalnum((unsigned char)name[len]))
		len++;
	if (len == 0 && (name == s->end || strchr("!?/", *name) == NULL ||
	    *name == '\0')) {
		put(s, "<", 1); /* "a < b" */
		s->p++;
		return;
	}
	s->p = tag_end(name, s->end);
	if ((tag = find_tag(name, len)) == NULL)
		return;
	raise_gap(s, tag->gap);
	if (strcmp(tag->name, "pre") == 0)
		s->pre = is_end ? 0 : 1;
	/* An end tag that is cut would be skipped to again. */
	if (tag->is_skipped && !is_end && s->p[-1] == '>' && s->p[-2] != '/')
		skip_element(s, tag->name);
}

/* --- text ---------------------------------------------------------------- */

static void
read_other(struct scanner *s)
{
	uint32_t codes[2] = { '&', 0 }, code;
	const char *next;
	unsigned n;

	if (*s->p == '&') {
		next = entity_read(s->p, s->end, codes);
		put_code(s, codes[0]);
		if (codes[1] != 0)
			put_code(s, codes[1]);
		s->p = next == NULL ? s->p + 1 : next;
		return;
	}
	if ((unsigned char)*s->p >= 0x80) {
		n = text_utf8_char((const unsigned char *)s->p,
		    (size_t)(s->end - s->p));
		code = text_code((const unsigned char *)s->p, n);
		if (is_space(code))
			raise_gap(s, GAP_BLANK);
		else if (!is_invisible(code))
			put(s, s->p, n);
		s->p += n;
		return;
	}
	if (*s->p == '\n' && s->pre > 0)
		raise_gap(s, GAP_LINE);
	else if (is_space((unsigned char)*s->p))
		raise_gap(s, GAP_BLANK);
	s->p++; /* other control characters are dropped */
}

static bool
is_plain(char c)
{
	return c > 0x20 && c != '<' && c != '&' && c != 0x7F;
}

void
html_to_text(struct buf *out, const char *html, size_t len, size_t max)
{
	struct scanner s = { .p = html, .end = html + len, .out = out,
		.start = out->len, .max = max };
	const char *p;

	while (s.p < s.end && out->len - s.start < max) {
		for (p = s.p; p < s.end && (is_plain(*p) ||
		    (*p == ' ' && p > s.p && p + 1 < s.end &&
		    is_plain(p[1]))); p++)
			;
		if (p > s.p) {
			put(&s, s.p, (size_t)(p - s.p));
			s.p = p;
		} else if (*s.p == '<') {
			read_tag(&s);
		} else {
			read_other(&s);
		}
	}
}

/* --- references ---------------------------------------------------------- */

static const char *
decode_cid(struct arena *arena, const char *p, size_t len)
{
	char *id = arena_alloc(arena, len + 1);
	size_t i, n = 0;

	for (i = 0; i < len; i++) {
		if (p[i] == '%' && i + 2 < len && hex_pair(p + i + 1) >= 0) {
			id[n++] = (char)hex_pair(p + i + 1);
			i += 2;
		} else if (len - i >= 5 && memcmp(p + i, "&amp;", 5) == 0) {
			id[n++] = '&';
			i += 4;
		} else {
			id[n++] = p[i];
		}
	}
	id[n] = '\0';
	return id;
}

void
html_find_cids(struct arena *arena, const char *html, size_t len,
    struct cid_list *list)
{
	const char *p = html, *end = html + len, *colon, **ids;
	size_t n;

	while (list->n < 1000 &&
	    (colon = memchr(p, ':', (size_t)(end - p))) != NULL) {
		p = colon + 1;
		if (colon - html < 3 || strncasecmp(colon - 3, "cid", 3) != 0)
			continue;
		for (n = 0; p + n < end && n < 500 && (unsigned char)p[n] >
		    0x20 && strchr("\"'<>)", p[n]) == NULL; n++)
			;
		if (n == 0)
			continue;
		if (list->n == list->cap) {
			list->cap = list->cap == 0 ? 8 : list->cap * 2;
			ids = ARENA_ARRAY(arena, const char *, list->cap);
			if (list->n > 0)
				memcpy(ids, list->ids, list->n *
				    sizeof(*ids));
			list->ids = ids;
		}
		list->ids[list->n++] = decode_cid(arena, p, n);
	}
}

bool
cid_list_has(const struct cid_list *list, const char *id)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (strcmp(list->ids[i], id) == 0)
			return true;
	return false;
}
