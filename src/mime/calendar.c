/*
 * calendar.c - what a person reads of an invitation.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * Lines are unfolded and looked at one by one; nothing is checked, for any part
 * of a broken calendar is better than none.  Alarms repeat what the event says
 * and are left out.  vCalendar 1.0 had quoted-printable values.
 */
#include "mime/calendar.h"

#include "mime/charset.h"
#include "mime/decode.h"

#include <ctype.h>

#define LINE_MAX_BYTES ((size_t)65536)

struct content_line {
	const char *name, *params, *value;
	size_t name_len, params_len, value_len;
};

static bool
line_is_name(const struct content_line *l, const char *name)
{
	return strlen(name) == l->name_len &&
	    strncasecmp(name, l->name, l->name_len) == 0;
}

static bool
line_is_value(const struct content_line *l, const char *value)
{
	return strlen(value) == l->value_len &&
	    strncasecmp(value, l->value, l->value_len) == 0;
}

/* NAME;PARAM="a:b":VALUE */
static bool
split_line(const char *p, size_t len, struct content_line *l)
{
	const char *end = p + len, *q = p;
	bool is_quoted = false;

	while (q < end && *q != ';' && *q != ':')
		q++;
	*l = (struct content_line){ .name = p, .name_len = (size_t)(q - p),
		.params = q };
	for (; q < end && (is_quoted || *q != ':'); q++)
		is_quoted ^= *q == '"';
	if (q == end)
		return false;
	l->params_len = (size_t)(q - l->params);
	l->value = q + 1;
	l->value_len = (size_t)(end - q - 1);
	return true;
}

/* The next line without its folds, into `line`; behind it in the text. */
static const char *
calendar_unfold(struct buf *line, const char *p, const char *end)
{
	const char *eol, *stop;

	buf_reset(line);
	do {
		eol = memchr(p, '\n', (size_t)(end - p));
		stop = eol == NULL ? end : eol;
		while (stop > p && stop[-1] == '\r')
			stop--;
		if (line->len < LINE_MAX_BYTES)
			buf_add(line, p, (size_t)(stop - p));
		p = eol == NULL ? end : eol + 1;
	} while (p < end && (*p == ' ' || *p == '\t') && p++ < end);
	return p;
}

static bool
line_has_param(const struct content_line *l, const char *word)
{
	size_t len = strlen(word), i;

	for (i = 0; i + len <= l->params_len; i++)
		if (strncasecmp(l->params + i, word, len) == 0)
			return true;
	return false;
}

/* Of a vCalendar: its soft line breaks have no blank behind them. */
static const char *
calendar_add_qp_lines(struct buf *line, const char *p, const char *end)
{
	const char *eol;

	while (line->len > 0 && line->data[line->len - 1] == '=' && p < end &&
	    line->len < LINE_MAX_BYTES) {
		line->len--;
		eol = memchr(p, '\n', (size_t)(end - p));
		eol = eol == NULL ? end : eol;
		buf_add(line, p, (size_t)(eol - p));
		while (line->len > 0 && line->data[line->len - 1] == '\r')
			line->len--;
		p = eol == end ? end : eol + 1;
	}
	return p;
}

static void
calendar_add_value(struct buf *out, const char *p, size_t len, size_t max)
{
	size_t i;

	for (i = 0; i < len && out->len < max; i++) {
		if (p[i] == '\\' && i + 1 < len) {
			i++;
			buf_addc(out, p[i] == 'n' || p[i] == 'N' ? '\n'
			    : p[i]);
		} else if ((unsigned char)p[i] >= 0x20 || p[i] == '\t' ||
		    p[i] == '\n') {
			buf_addc(out, p[i]);
		}
	}
	buf_addc(out, '\n');
}

static void
calendar_add_qp_value(struct arena *arena, struct buf *out,
    const struct content_line *l, size_t max)
{
	struct sink sink = { .max = SIZE_MAX };
	struct decoder_state d;
	const char *text;
	size_t len;

	decode_init(&d, ENCODING_QP, &sink);
	decode_feed(&d, (const unsigned char *)l->value, l->value_len);
	decode_end(&d);
	text = charset_convert(arena, CHARSET_GUESSED, buf_str(&sink.kept),
	    sink.kept.len, &len);
	calendar_add_value(out, text, len, max);
	buf_release(&sink.kept);
}

static bool
line_is_wanted(const struct content_line *l)
{
	return l->value_len > 0 && (line_is_name(l, "SUMMARY") ||
	    line_is_name(l, "LOCATION") || line_is_name(l, "DESCRIPTION") ||
	    line_is_name(l, "COMMENT"));
}

const char *
calendar_join(struct arena *arena, const char *bytes, size_t *len)
{
	char *out = arena_alloc(arena, *len + 1);
	size_t i, n = 0;

	for (i = 0; i < *len; i++) {
		if (bytes[i] != '\n' || i + 1 == *len ||
		    (bytes[i + 1] != ' ' && bytes[i + 1] != '\t')) {
			out[n++] = bytes[i];
			continue;
		}
		while (n > 0 && out[n - 1] == '\r')
			n--;
		i++; /* the blank */
	}
	out[n] = '\0';
	*len = n;
	return out;
}

void
calendar_to_text(struct arena *arena, struct buf *out, const char *text,
    size_t len, size_t max)
{
	const char *p = text, *end = text + len;
	struct buf line = BUF_INIT;
	struct content_line l;
	bool is_alarm = false;

	while (p < end && out->len < max) {
		p = calendar_unfold(&line, p, end);
		if (line.len == 0 || !split_line(line.data, line.len, &l))
			continue;
		if (line_is_name(&l, "BEGIN") || line_is_name(&l, "END"))
			is_alarm = line_is_name(&l, "BEGIN") &&
			    line_is_value(&l, "VALARM");
		if (is_alarm || !line_is_wanted(&l))
			continue;
		if (!line_has_param(&l, "QUOTED-PRINTABLE")) {
			calendar_add_value(out, l.value, l.value_len, max);
			continue;
		}
		p = calendar_add_qp_lines(&line, p, end);
		split_line(line.data, line.len, &l);
		calendar_add_qp_value(arena, out, &l, max);
	}
	buf_release(&line);
}
