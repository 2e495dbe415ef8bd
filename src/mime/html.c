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

#define TAG_MAX ((size_t)65536) /* a longer one is left out as it comes */
#define ENTITY_MAX 40

struct scanner {
	const char *p, *end;
	struct html *h;
	bool is_last; /* no other piece will follow */
};

/* What a tag means for the text; those not listed mean nothing. */
static const struct tag {
	const char *name;
	enum gap gap;
	const char *skip; /* left out up to there */
	bool is_pre;
} tags[] = {
	{ "br", GAP_LINE, NULL, false }, { "p", GAP_PARAGRAPH, NULL, false },
	{ "div", GAP_LINE, NULL, false }, { "td", GAP_BLANK, NULL, false },
	{ "th", GAP_BLANK, NULL, false }, { "tr", GAP_LINE, NULL, false },
	{ "li", GAP_LINE, NULL, false }, { "table", GAP_LINE, NULL, false },
	{ "style", GAP_LINE, "</style", false },
	{ "script", GAP_LINE, "</script", false },
	{ "title", GAP_LINE, "</title", false },
	{ "h1", GAP_PARAGRAPH, NULL, false },
	{ "h2", GAP_PARAGRAPH, NULL, false },
	{ "h3", GAP_PARAGRAPH, NULL, false },
	{ "h4", GAP_PARAGRAPH, NULL, false },
	{ "h5", GAP_PARAGRAPH, NULL, false },
	{ "h6", GAP_PARAGRAPH, NULL, false }, { "ul", GAP_LINE, NULL, false },
	{ "ol", GAP_LINE, NULL, false }, { "dl", GAP_LINE, NULL, false },
	{ "dt", GAP_LINE, NULL, false }, { "dd", GAP_LINE, NULL, false },
	{ "hr", GAP_LINE, NULL, false }, { "pre", GAP_LINE, NULL, true },
	{ "blockquote", GAP_LINE, NULL, false },
	{ "center", GAP_LINE, NULL, false },
	{ "section", GAP_LINE, NULL, false },
	{ "article", GAP_LINE, NULL, false },
	{ "header", GAP_LINE, NULL, false },
	{ "footer", GAP_LINE, NULL, false }, { "form", GAP_LINE, NULL, false },
	{ "body", GAP_LINE, NULL, false }, { "option", GAP_LINE, NULL, false },
	{ "address", GAP_LINE, NULL, false },
	{ "template", GAP_NONE, "</template", false },
	{ "svg", GAP_NONE, "</svg", false },
};

static void
raise_gap(struct scanner *s, enum gap gap)
{
	if ((int)gap > s->h->gap)
		s->h->gap = (int)gap;
}

static void
write_gap(struct scanner *s)
{
	enum gap gap = (enum gap)s->h->gap;

	if (s->h->out->len > s->h->start)
		buf_add(s->h->out, gap == GAP_PARAGRAPH ? "\n\n" :
		    gap == GAP_LINE ? "\n" : " ", gap == GAP_PARAGRAPH ? 2 : 1);
	s->h->gap = GAP_NONE;
}

static void
html_put(struct scanner *s, const char *p, size_t len)
{
	if (s->h->gap != GAP_NONE)
		write_gap(s);
	buf_add(s->h->out, p, len);
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
		html_put(s, utf8, text_encode(utf8, code));
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

/* Behind the '>' of a tag; quotes may hold one.  NULL: it does not end. */
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
	return NULL;
}

/*
 * Leaves out all up to what h->skip says.  Whether it was found; if not, what
 * may be the beginning of it is left.
 */
static bool
skip_on(struct scanner *s)
{
	const char *word = s->h->skip, *p = s->p;
	size_t len = strlen(word), left;

	while ((p = memchr(p, word[0], (size_t)(s->end - p))) != NULL) {
		left = (size_t)(s->end - p);
		if (left >= len && strncasecmp(p, word, len) == 0) {
			s->p = p;
			s->h->skip = NULL;
			return true;
		}
		if (left < len && strncasecmp(p, word, left) == 0)
			break;
		p++;
	}
	s->p = p == NULL || s->is_last ? s->end : p;
	return false;
}

/* "<!--": a comment, also one that never ends. */
static void
read_comment(struct scanner *s)
{
	s->p += 2;
	s->h->skip = "-->";
	if (skip_on(s))
		s->p += 3;
}

/* "<" of a tag that is in the window as a whole, or will never be. */
static void
read_tag(struct scanner *s)
{
	const char *p = s->p + 1, *name, *end;
	const struct tag *tag;
	bool is_end = p < s->end && *p == '/';
	size_t len = 0;

	name = p + is_end;
	while (name + len < s->end && isalnum((unsigned char)name[len]))
		len++;
	if (len == 0 && (name == s->end || strchr("!?/", *name) == NULL ||
	    *name == '\0')) {
		html_put(s, "<", 1); /* "a < b" */
		s->p++;
		return;
	}
	if ((end = tag_end(name, s->end)) == NULL) {
		s->p = s->end;
		s->h->skip = ">";
		return;
	}
	s->p = end;
	if ((tag = find_tag(name, len)) == NULL)
		return;
	raise_gap(s, tag->gap);
	if (tag->is_pre)
		s->h->is_pre = !is_end;
	if (tag->skip != NULL && !is_end && s->p[-2] != '/') {
		s->h->skip = tag->skip;
		skip_on(s);
	}
}

/* Whether a tag, comment or entity at s->p may go on in the next piece. */
static bool
is_unfinished(const struct scanner *s)
{
	size_t left = (size_t)(s->end - s->p);

	if (s->is_last)
		return false;
	if (*s->p == '&')
		return left < ENTITY_MAX;
	return *s->p == '<' && left < TAG_MAX &&
	    (left < 4 || memcmp(s->p, "<!--", 4) != 0) &&
	    tag_end(s->p + 1, s->end) == NULL;
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
			html_put(s, s->p, n);
		s->p += n;
		return;
	}
	if (*s->p == '\n' && s->h->is_pre)
		raise_gap(s, GAP_LINE);
	else if (is_space((unsigned char)*s->p))
		raise_gap(s, GAP_BLANK);
	s->p++; /* other control characters are dropped */
}

/* All but '&', '<' and what read_other looks at: most of a text. */
static const bool is_plain[256] = {
	[0x21 ... 0x25] = true,
	[0x27 ... 0x3B] = true,
	[0x3D ... 0x7E] = true,
};

/* Behind the plain characters, and the single blanks between them. */
static const char *
plain_end(const char *p, const char *end)
{
	while (p < end && is_plain[(unsigned char)*p]) {
		while (++p < end && is_plain[(unsigned char)*p])
			;
		if (end - p > 1 && *p == ' ' && is_plain[(unsigned char)p[1]])
			p++;
	}
	return p;
}

static bool
html_has_room(const struct html *h)
{
	return h->out->len - h->start < h->max;
}

static void
html_scan(struct scanner *s)
{
	const char *p;

	while (s->p < s->end && html_has_room(s->h)) {
		if (s->h->skip != NULL) {
			if (!skip_on(s))
				return;
			/* An end tag is read as such. */
			s->p += *s->p == '<' ? 0 : *s->p == '>' ? 1 : 3;
			continue;
		}
		p = plain_end(s->p, s->end);
		if (p > s->p) {
			html_put(s, s->p, (size_t)(p - s->p));
			s->p = p;
		} else if (is_unfinished(s)) {
			return;
		} else if (s->end - s->p >= 4 &&
		    memcmp(s->p, "<!--", 4) == 0) {
			read_comment(s);
		} else if (*s->p == '<') {
			read_tag(s);
		} else {
			read_other(s);
		}
	}
}

void
html_init(struct html *h, struct buf *out, size_t max)
{
	*h = (struct html){ .out = out, .start = out->len, .max = max,
		.rest = BUF_INIT };
}

void
html_feed(struct html *h, const char *html, size_t len, bool is_last)
{
	struct scanner s = { .p = html, .end = html + len, .h = h,
		.is_last = is_last };

	if (h->rest.len > 0) {
		buf_add(&h->rest, html, len);
		s.p = h->rest.data;
		s.end = s.p + h->rest.len;
	}
	html_scan(&s);
	len = (size_t)(s.end - s.p);
	h->is_cut |= !html_has_room(h) && (len > 0 || !is_last);
	if (h->rest.len > 0)
		memmove(h->rest.data, s.p, len);
	else
		buf_add(&h->rest, s.p, len);
	h->rest.len = len;
}

void
html_release(struct html *h)
{
	buf_release(&h->rest);
}

void
html_to_text(struct buf *out, const char *html, size_t len, size_t max)
{
	struct html h;

	html_init(&h, out, max);
	html_feed(&h, html, len, true);
	html_release(&h);
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
