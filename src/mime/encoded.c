/*
 * encoded.c - header values to what a person reads.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * More lenient than RFC 2047: words may hold blanks, stand in quotes or in the
 * middle of a word, and neighbours of one charset are joined before they are
 * converted, since many mailers split inside a character (L161).
 */
#include "config.h"

#include "mime/encoded.h"

#include "base/buf.h"
#include "base/text.h"
#include "mime/charset.h"
#include "mime/decode.h"

#include <stdbool.h>

#define LABEL_MAX 40

struct word {
	const char *label;
	size_t label_len;
	const char *text;
	size_t len;
	bool is_base64;
	const char *end; /* behind the word */
};

struct decoder {
	struct arena *arena;
	struct buf out;
	struct buf pending; /* bytes of neighbours of one charset */
	const char *label;
	size_t label_len;
	enum charset charset; /* of raw bytes */
	const char *last;    /* "?=" of the value; NULL: none */
};

/* `last`: no word ends behind it, so that no search goes on for nothing. */
static bool
find_word(const char *p, const char *last, struct word *w)
{
	const char *q, *star, *end;

	if (last == NULL || last - p < 6 || p[0] != '=' || p[1] != '?')
		return false;
	end = last + 2;
	w->label = p + 2;
	q = memchr(w->label, '?', end - w->label > LABEL_MAX ? LABEL_MAX + 1
	    : (size_t)(end - w->label));
	if (q == NULL || q == w->label || end - q < 5 || q[2] != '?')
		return false;
	star = memchr(w->label, '*', (size_t)(q - w->label)); /* language */
	w->label_len = (size_t)((star != NULL ? star : q) - w->label);
	if (q[1] != 'q' && q[1] != 'Q' && q[1] != 'b' && q[1] != 'B')
		return false;
	w->is_base64 = q[1] == 'b' || q[1] == 'B';
	w->text = q + 3;
	q = memmem(w->text, (size_t)(end - w->text), "?=", 2);
	if (q == NULL)
		return false;
	w->len = (size_t)(q - w->text);
	w->end = q + 2;
	return true;
}

static void
add_q(struct buf *out, const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (p[i] == '=' && i + 2 < len && hex_pair(p + i + 1) >= 0) {
			buf_addc(out, (char)hex_pair(p + i + 1));
			i += 2;
		} else {
			buf_addc(out, p[i] == '_' ? ' ' : p[i]);
		}
	}
}

/* As charset_convert(), then without control characters. */
static void
add_clean(struct decoder *d, enum charset charset, const char *bytes,
    size_t len)
{
	const char *text;
	size_t i, n;
	unsigned char c;

	text = charset_convert(d->arena, charset, bytes, len, &n);
	for (i = 0; i < n; i++) {
		c = (unsigned char)text[i];
		if (c == '\t' || c == '\n' || c == '\r')
			buf_addc(&d->out, ' ');
		else if (c == 0xC2 && (unsigned char)text[i + 1] < 0xA0)
			i++; /* C1 */
		else if (c >= 0x20 && c != 0x7F)
			buf_addc(&d->out, text[i]);
	}
}

static void
encoded_flush(struct decoder *d)
{
	if (d->pending.len > 0)
		add_clean(d, charset_find(d->label, d->label_len),
		    d->pending.data, d->pending.len);
	buf_reset(&d->pending);
	d->label = NULL;
}

static void
add_word(struct decoder *d, const struct word *w)
{
	if (d->label != NULL && (d->label_len != w->label_len ||
	    strncasecmp(d->label, w->label, w->label_len) != 0))
		encoded_flush(d);
	d->label = w->label;
	d->label_len = w->label_len;
	if (w->is_base64)
		decode_base64_word(&d->pending, w->text, w->len);
	else
		add_q(&d->pending, w->text, w->len);
}

static bool
is_blank_only(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p == end;
}

static void
encoded_decode(struct decoder *d, const char *p, const char *end)
{
	const char *raw = p;
	struct word w;

	while (p < end) {
		p = memchr(p, '=', (size_t)(end - p));
		if (p == NULL)
			break;
		if (!find_word(p, d->last, &w)) {
			p++;
			continue;
		}
		/* Blanks between two words are no text. */
		if (d->label == NULL || !is_blank_only(raw, p)) {
			encoded_flush(d);
			add_clean(d, d->charset, raw, (size_t)(p - raw));
		}
		add_word(d, &w);
		raw = p = w.end;
	}
	encoded_flush(d);
	add_clean(d, d->charset, raw, (size_t)(end - raw));
}

static const char *
find_last_end(const char *value, size_t len)
{
	size_t n;

	for (n = len; n >= 2; n--)
		if (value[n - 2] == '?' && value[n - 1] == '=')
			return value + n - 2;
	return NULL;
}

static bool
is_plain(const char *value, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (value[i] < 0x20 || value[i] == 0x7F ||
		    (value[i] == '=' && value[i + 1] == '?'))
			return false;
	return true;
}

const char *
encoded_text(struct arena *arena, const char *value, size_t len)
{
	struct decoder d = { .arena = arena, .out = BUF_INIT,
		.pending = BUF_INIT };
	char *text, *start;
	size_t n;

	if (is_plain(value, len))
		return arena_strndup(arena, value, len);
	d.charset = charset_of_raw(value, len, CHARSET_GUESSED);
	d.last = find_last_end(value, len);
	encoded_decode(&d, value, value + len);
	for (n = d.out.len; n > 0 && d.out.data[n - 1] == ' '; n--)
		;
	text = arena_strndup(arena, buf_str(&d.out), n);
	for (start = text; *start == ' '; start++)
		;
	buf_release(&d.out);
	buf_release(&d.pending);
	return start;
}
