/*
 * address.c - From, To and their kind, however broken.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * One pass, no recursion (groups in groups overflow gmime's stack).  The rule
 * of L170: whatever else is wrong, find what stands in <...> or has an '@',
 * and take the rest for the name.  A piece with neither, before a piece that
 * has <...>, was a name with a bare comma.
 */
#include "config.h"

#include "mime/address.h"

#include "base/buf.h"
#include "base/text.h"
#include "base/xmem.h"
#include "mime/encoded.h"

struct parser {
	struct arena *arena;
	const char *p, *end;
	char kind;
	struct address_list *list;
	struct buf phrase;  /* words outside of <...>, unquoted */
	struct buf comment; /* the first one */
	struct buf angle;   /* inside of <...> */
	struct buf bare;    /* as phrase, but with quotes, without comments */
	bool has_angle;
	bool has_at; /* in `bare`, outside of quotes */
	/* Once one never closed, the rest are plain characters: otherwise
	 * each would be a search to the end. */
	bool is_quote_broken, is_comment_broken;
};

static bool
address_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Behind the closing quote; NULL when it never closes. */
static const char *
quote_end(const char *p, const char *end)
{
	for (p++; p < end; p++) {
		if (*p == '\\' && p + 1 < end)
			p++;
		else if (*p == '"')
			return p + 1;
	}
	return NULL;
}

/* Behind a comment, or NULL when it never closes. */
static const char *
comment_end(const char *p, const char *end)
{
	unsigned depth = 0;

	for (; p < end; p++) {
		if (*p == '\\' && p + 1 < end)
			p++;
		else if (*p == '(')
			depth++;
		else if (*p == ')' && --depth == 0)
			return p + 1;
	}
	return NULL;
}

static const char *
find_quote_end(struct parser *a, const char *p)
{
	const char *end = a->is_quote_broken ? NULL : quote_end(p, a->end);

	a->is_quote_broken |= end == NULL;
	return end;
}

/*
 * A quote that closes only behind the next addresses ("Bob, <b@y>, "Eve") was
 * never closed: its end belongs to another name.
 */
static const char *
find_name_end(struct parser *a, const char *p)
{
	const char *end = find_quote_end(a, p), *q = p;

	while (end != NULL && (q = memchr(q, '>', (size_t)(end - q))) != NULL) {
		for (q++; q < end && address_is_blank(*q); q++)
			;
		if (q < end && (*q == ',' || *q == ';'))
			return NULL;
	}
	return end;
}

static const char *
find_comment_end(struct parser *a, const char *p)
{
	const char *end = a->is_comment_broken ? NULL : comment_end(p, a->end);

	a->is_comment_broken |= end == NULL;
	return end;
}

static void
add_unescaped(struct buf *out, const char *p, const char *end)
{
	for (; p < end; p++) {
		if (*p == '\\' && p + 1 < end)
			p++;
		buf_addc(out, *p);
	}
}

static void
add_comment(struct parser *a, const char *p, const char *end)
{
	if (a->comment.len == 0)
		add_unescaped(&a->comment, p + 1, end - 1);
}

/* <...>; an unclosed one ends at the next separator. */
static void
read_angle(struct parser *a)
{
	const char *next;

	buf_reset(&a->angle);
	a->has_angle = true;
	for (a->p++; a->p < a->end && *a->p != '>';) {
		if (*a->p == '(' &&
		    (next = find_comment_end(a, a->p)) != NULL) {
			add_comment(a, a->p, next);
			a->p = next;
		} else if (*a->p == '"' &&
		    (next = find_quote_end(a, a->p)) != NULL) {
			buf_add(&a->angle, a->p, (size_t)(next - a->p));
			a->p = next;
		} else if (*a->p == '<') {
			buf_reset(&a->angle); /* "<<a@b>>" */
			a->p++;
		} else if (*a->p == ';' ||
		    (*a->p == ',' && a->angle.len > 0 &&
		    a->angle.data[0] != '@')) {
			return;
		} else {
			if (!address_is_blank(*a->p))
				buf_addc(&a->angle, *a->p);
			a->p++;
		}
	}
	if (a->p < a->end)
		a->p++;
	/* A source route: the address is behind its colon. */
	if (a->angle.len > 0 && a->angle.data[0] == '@' &&
	    (next = memchr(a->angle.data, ':', a->angle.len)) != NULL) {
		size_t n = a->angle.len - (size_t)(next + 1 - a->angle.data);

		memmove(a->angle.data, next + 1, n);
		a->angle.len = n;
		a->angle.data[n] = '\0';
	}
}

/* Without the blanks, quotes and commas round it. */
static const char *
address_trim(char *s)
{
	size_t len = strlen(s);

	for (;;) {
		while (len > 0 && strchr(" \t',", s[len - 1]) != NULL)
			len--;
		s[len] = '\0';
		while (*s != '\0' && strchr(" \t',", *s) != NULL) {
			s++;
			len--;
		}
		if (len < 2 || s[0] != '"' || s[len - 1] != '"')
			return s;
		s++;
		len -= 2;
	}
}

/* Names: decoded. */
static const char *
clean_name(struct parser *a, const struct buf *raw)
{
	const char *text = encoded_text(a->arena, buf_str(raw), raw->len);

	return address_trim(arena_strdup(a->arena, text));
}

/*
 * Addresses: clean, without blanks and "mailto:".  As written: what an encoded
 * word says is no address (RFC 2047 5), or anybody could write any sender.
 */
static const char *
clean_addr(struct parser *a, const char *raw, size_t len)
{
	bool is_quoted = memchr(raw, '"', len) != NULL; /* blanks are meant */
	const unsigned char *c;
	char *text, *out;

	if (len >= 7 && strncasecmp(raw, "mailto:", 7) == 0) {
		raw += 7;
		len -= 7;
	}
	text = out = text_clean(a->arena, raw, len, NULL);
	for (c = (const unsigned char *)text; *c != '\0'; c++)
		if (*c > 0x20 ? *c != 0x7F : *c == ' ' && is_quoted)
			*out++ = (char)*c;
	*out = '\0';
	return text;
}

static void
address_append(struct parser *a, const char *name, const char *addr)
{
	struct address_list *list = a->list;
	struct address *items;

	if (*addr == '@' || (*addr != '\0' && addr[strlen(addr) - 1] == '@')) {
		name = *name != '\0' ? name : addr; /* half of one */
		addr = "";
	}
	if (*name == '\0' && *addr == '\0')
		return;
	if (list->n >= list->max) {
		list->is_cut = true;
		return;
	}
	if (list->n == list->cap) {
		list->cap = list->cap == 0 ? 4 : list->cap * 2;
		items = ARENA_ARRAY(a->arena, struct address, list->cap);
		if (list->n > 0)
			memcpy(items, list->items,
			    list->n * sizeof(*items));
		list->items = items;
	}
	list->items[list->n++] = (struct address){ .kind = a->kind,
		.name = name, .addr = addr };
}

/* The next '@' outside of quotes, or the end. */
static const char *
find_at(const char *p, const char *end)
{
	const char *next;

	while (p < end && *p != '@')
		p = *p == '"' && (next = quote_end(p, end)) != NULL ? next
		    : p + 1;
	return p;
}

/* Where the address round the '@' begins; blanks beside it are its own. */
static const char *
bare_start(const char *start, const char *at)
{
	const char *p = at;

	while (p > start && address_is_blank(p[-1]))
		p--;
	if (p > start && p[-1] == '"') {
		for (p--; p > start && p[-1] != '"'; p--)
			;
		p -= p > start;
	}
	while (p > start && !address_is_blank(p[-1]))
		p--;
	return p;
}

static const char *
bare_end(const char *at, const char *end)
{
	while (++at < end && address_is_blank(*at))
		;
	while (at < end && !address_is_blank(*at))
		at++;
	return at;
}

/*
 * A piece without <...>: the word with '@' is the address, whatever stands
 * around it the name ("Ann ann@example.org").  Further such words are
 * addresses that a comma is missing between.
 */
static void
finish_bare(struct parser *a)
{
	const char *p = buf_str(&a->bare), *end = p + a->bare.len;
	const char *at = find_at(p, end), *from, *to, *text;
	struct buf name = BUF_INIT;

	if (at == end)
		address_append(a, clean_name(a, &a->phrase), "");
	for (; at < end; p = to) {
		from = bare_start(p, at);
		to = bare_end(at, end);
		at = find_at(to, end);
		buf_reset(&name);
		buf_add(&name, p, (size_t)(from - p));
		if (at == end)
			buf_add(&name, to, (size_t)(end - to));
		text = clean_name(a, &name);
		if (*text == '\0')
			text = clean_name(a, &a->comment);
		buf_reset(&a->comment); /* names one of them */
		address_append(
		    a, text, clean_addr(a, from, (size_t)(to - from)));
	}
	buf_release(&name);
}

/* What servers write where there is no host: ".MISSING-HOST-NAME." (L028). */
static bool
is_placeholder(const char *addr)
{
	const char *at = strrchr(addr, '@');
	const char *host = at != NULL ? at + 1 : addr;
	size_t len = strlen(host);

	return len > 2 && host[0] == '.' && host[len - 1] == '.';
}

static void
finish_piece(struct parser *a)
{
	const char *name, *addr;

	if (a->has_angle) {
		name = clean_name(a, &a->phrase);
		if (*name == '\0')
			name = clean_name(a, &a->comment);
		addr = clean_addr(a, buf_str(&a->angle), a->angle.len);
		address_append(a, name, is_placeholder(addr) ? "" : addr);
	} else if (a->phrase.len > 0) {
		finish_bare(a);
	}
	buf_reset(&a->phrase);
	buf_reset(&a->comment);
	buf_reset(&a->angle);
	buf_reset(&a->bare);
	a->has_angle = a->has_at = false;
}

/* "Doe, John <...>": a comma inside a name. */
static bool
is_comma_in_name(struct parser *a)
{
	const char *p = a->p + 1, *next;

	if (a->has_angle || a->has_at || a->phrase.len == 0 ||
	    memchr(a->phrase.data, ',', a->phrase.len) != NULL)
		return false;
	while (p < a->end && *p != ',' && *p != ';' && *p != '@') {
		if (*p == '<')
			return true;
		next = *p == '"' ? find_quote_end(a, p) : NULL;
		p = next != NULL ? next : p + 1;
	}
	return false;
}

static void
add_both(struct parser *a, const char *p, size_t len)
{
	buf_add(&a->phrase, p, len);
	buf_add(&a->bare, p, len);
	a->has_at |= memchr(p, '@', len) != NULL;
}

/* "Team:" before its members; mailto: and the like are no groups. */
static bool
is_group_colon(const struct parser *a)
{
	return !a->has_angle && !a->has_at &&
	    strcasecmp(buf_str(&a->bare), "mailto") != 0;
}

static void
address_read_quoted(struct parser *a)
{
	const char *next = find_name_end(a, a->p);

	if (next == NULL) {
		a->p++; /* never closed: as if it were not there */
		return;
	}
	add_unescaped(&a->phrase, a->p + 1, next - 1);
	buf_add(&a->bare, a->p, (size_t)(next - a->p));
	a->p = next;
}

/*
 * A comment that never closes, behind an address: what looks like one inside
 * of it is none.
 */
static void
skip_to_comma(struct parser *a)
{
	while (a->p < a->end && *a->p != ',' && *a->p != ';')
		a->p++;
}

static bool
is_special(char c)
{
	return c == '"' || c == '(' || c == '<' || c == ',' || c == ';' ||
	    c == ':' || c == '>';
}

static void
address_step(struct parser *a)
{
	const char *next;

	switch (*a->p) {
	case '"':
		address_read_quoted(a);
		return;
	case '(':
		if ((next = find_comment_end(a, a->p)) == NULL) {
			if (!a->has_at && !a->has_angle)
				break;
			skip_to_comma(a);
			return;
		}
		add_comment(a, a->p, next);
		a->p = next;
		add_both(a, " ", 1);
		return;
	case '<':
		read_angle(a);
		return;
	case ',':
		if (is_comma_in_name(a))
			break;
		/* FALLTHROUGH */
	case ';':
		finish_piece(a);
		a->p++;
		return;
	case ':':
		if (!is_group_colon(a))
			break;
		buf_reset(&a->phrase);
		buf_reset(&a->bare);
		a->p++;
		return;
	}
	/* Behind <...> another word begins the next one: a comma is missing. */
	if (a->has_angle && !address_is_blank(*a->p) && a->angle.len > 0 &&
	    *a->p != '>')
		finish_piece(a);
	for (next = a->p + 1; !a->has_angle && next < a->end &&
	    !is_special(*next); next++)
		;
	if (*a->p != '>')
		add_both(a, a->p, (size_t)(next - a->p));
	a->p = next;
}

static void
mime_address_parse(struct parser *a, const char *value, size_t len)
{
	a->p = value;
	a->end = value + len;
	while (a->p < a->end)
		address_step(a);
	finish_piece(a);
}

void
address_parse(struct arena *arena, const struct field *field, char kind,
    struct address_list *list)
{
	struct parser a = { .arena = arena, .kind = kind,
		.list = list };
	const char *text;

	if (field->value == NULL)
		return;
	/* Encoded as a whole, addresses and all. */
	if (memchr(field->value, '@', field->len) == NULL &&
	    memmem(field->value, field->len, "=?", 2) != NULL) {
		text = encoded_text(arena, field->value, field->len);
		if (strchr(text, '@') != NULL)
			mime_address_parse(&a, text, strlen(text));
		else
			mime_address_parse(&a, field->value, field->len);
	} else {
		mime_address_parse(&a, field->value, field->len);
	}
	buf_release(&a.phrase);
	buf_release(&a.comment);
	buf_release(&a.angle);
	buf_release(&a.bare);
}
