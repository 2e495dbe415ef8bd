/*
 * decode.c - content transfer encodings, piece by piece.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * gmime's decoders lose data in the cases of L156: a soft line break with
 * blanks behind '=', base64 with a clear text behind it.  Decoded bytes are
 * always counted and only kept as far as wanted, so an attachment of any size
 * costs no memory.
 */
#include "mime/decode.h"

enum { STAGE_DATA, STAGE_LINE_START, STAGE_CHECK };

static const signed char base64_value[256] = {
#define V(c, v) [c] = (v) + 1
	V('A', 0), V('B', 1), V('C', 2), V('D', 3), V('E', 4), V('F', 5),
	V('G', 6), V('H', 7), V('I', 8), V('J', 9), V('K', 10), V('L', 11),
	V('M', 12), V('N', 13), V('O', 14), V('P', 15), V('Q', 16),
	V('R', 17), V('S', 18), V('T', 19), V('U', 20), V('V', 21),
	V('W', 22), V('X', 23), V('Y', 24), V('Z', 25), V('a', 26),
	V('b', 27), V('c', 28), V('d', 29), V('e', 30), V('f', 31),
	V('g', 32), V('h', 33), V('i', 34), V('j', 35), V('k', 36),
	V('l', 37), V('m', 38), V('n', 39), V('o', 40), V('p', 41),
	V('q', 42), V('r', 43), V('s', 44), V('t', 45), V('u', 46),
	V('v', 47), V('w', 48), V('x', 49), V('y', 50), V('z', 51),
	V('0', 52), V('1', 53), V('2', 54), V('3', 55), V('4', 56),
	V('5', 57), V('6', 58), V('7', 59), V('8', 60), V('9', 61),
	V('+', 62), V('/', 63),
#undef V
};

enum encoding
encoding_parse(const char *value, size_t len)
{
	static const struct {
		const char *name;
		enum encoding encoding;
	} table[] = {
		{ "base64", ENCODING_BASE64 },
		{ "quoted-printable", ENCODING_QP },
		{ "x-uuencode", ENCODING_UU },
		{ "x-uue", ENCODING_UU },
		{ "uuencode", ENCODING_UU },
	};
	size_t i, n;

	while (len > 0 && (*value == '"' || *value == ' ')) {
		value++;
		len--;
	}
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		n = strlen(table[i].name);
		if (len >= n && strncasecmp(value, table[i].name, n) == 0)
			return table[i].encoding;
	}
	return ENCODING_NONE;
}

int
hex_digit(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int
hex_pair(const void *p)
{
	const unsigned char *c = p;
	int high = hex_digit(c[0]), low = hex_digit(c[1]);

	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static void
decode_put(struct sink *s, const void *bytes, size_t len)
{
	size_t room = s->max > s->kept.len ? s->max - s->kept.len : 0;

	s->total += len;
	if (room > 0)
		buf_add(&s->kept, bytes, len < room ? len : room);
}

void
decode_init(struct decoder_state *d, enum encoding encoding, struct sink *sink)
{
	memset(d, 0, sizeof(*d));
	d->encoding = encoding;
	d->sink = sink;
}

bool
decode_is_base64(unsigned char c)
{
	return base64_value[c] != 0;
}

/* --- base64 -------------------------------------------------------------- */

static void
base64_flush(struct decoder_state *d)
{
	unsigned char out[2];
	size_t n = 0;

	if (d->n_bits == 12)
		out[n++] = (unsigned char)(d->bits >> 4);
	if (d->n_bits == 18) {
		out[n++] = (unsigned char)(d->bits >> 10);
		out[n++] = (unsigned char)(d->bits >> 2);
	}
	decode_put(d->sink, out, n);
	d->bits = d->n_bits = 0;
}

/* Up to an '=' or the line end; junk is skipped. */
static size_t
base64_data(struct decoder_state *d, const unsigned char *p, size_t len)
{
	unsigned char out[1536];
	size_t i = 0, n = 0;
	int v;

	while (i < len && p[i] != '=' && p[i] != '\n') {
		/* Four of the alphabet at a time. */
		while (d->n_bits == 0 && i + 4 <= len && n + 3 < sizeof(out)) {
			int a = base64_value[p[i]], b = base64_value[p[i + 1]];
			int c = base64_value[p[i + 2]];
			int e = base64_value[p[i + 3]];
			uint32_t bits;

			if (a == 0 || b == 0 || c == 0 || e == 0)
				break;
			bits = (uint32_t)(a - 1) << 18 |
			    (uint32_t)(b - 1) << 12 | (uint32_t)(c - 1) << 6 |
			    (uint32_t)(e - 1);
			out[n++] = (unsigned char)(bits >> 16);
			out[n++] = (unsigned char)(bits >> 8);
			out[n++] = (unsigned char)bits;
			i += 4;
		}
		if (n + 6 >= sizeof(out)) {
			decode_put(d->sink, out, n);
			n = 0;
		}
		if (i == len || p[i] == '=' || p[i] == '\n')
			break;
		if ((v = base64_value[p[i++]]) == 0)
			continue;
		d->bits = d->bits << 6 | (uint32_t)(v - 1);
		d->n_bits += 6;
		if (d->n_bits == 24) {
			out[n++] = (unsigned char)(d->bits >> 16);
			out[n++] = (unsigned char)(d->bits >> 8);
			out[n++] = (unsigned char)d->bits;
			d->bits = d->n_bits = 0;
		}
	}
	decode_put(d->sink, out, n);
	return i;
}

/*
 * Behind padding or an empty line there may be more base64 (pieces put
 * together), or a footer in clear that some list added: it goes on only with
 * a line that is nothing but base64.
 */
static bool
is_pure_base64(const unsigned char *p, size_t len)
{
	size_t i, n = 0;

	while (len > 0 && (p[len - 1] == '\r' || p[len - 1] == '\n'))
		len--;
	for (i = 0; i < len; i++) {
		if (p[i] == '=')
			break;
		if (base64_value[p[i]] == 0)
			return false;
		n++;
	}
	return n >= 2 && (i < len ? len - i <= 2 : n % 4 == 0);
}

static void base64_feed(struct decoder_state *d, const unsigned char *p,
    size_t len);

static void
base64_check(struct decoder_state *d)
{
	unsigned char line[sizeof(d->line)];
	size_t len = d->line_len;

	d->line_len = 0;
	if (len > 0 && is_pure_base64(d->line, len)) {
		memcpy(line, d->line, len);
		d->stage = STAGE_DATA;
		base64_feed(d, line, len);
	} else {
		d->is_done = true;
	}
}

static void
base64_feed(struct decoder_state *d, const unsigned char *p, size_t len)
{
	size_t i = 0;
	bool is_end;

	while (i < len && !d->is_done) {
		if (d->stage == STAGE_CHECK) {
			is_end = p[i] == '\n';
			if (d->line_len > 0 ||
			    (!is_end && p[i] != '\r' && p[i] != '='))
				d->line[d->line_len++] = p[i];
			i++;
			if (d->line_len == sizeof(d->line) ||
			    (is_end && d->line_len > 0))
				base64_check(d);
			continue;
		}
		if (d->stage == STAGE_LINE_START) {
			if (p[i] == '\r') {
				i++;
				continue;
			}
			d->stage = STAGE_DATA;
			if (p[i] == '\n' &&
			    (d->sink->total > 0 || d->n_bits > 0)) {
				base64_flush(d);
				d->stage = STAGE_CHECK;
				continue;
			}
		}
		i += base64_data(d, p + i, len - i);
		if (i == len)
			break;
		if (p[i] == '\n') {
			d->stage = STAGE_LINE_START;
		} else if (d->n_bits >= 12) { /* '=' ends a quantum */
			base64_flush(d);
			while (i + 1 < len && p[i + 1] == '=')
				i++;
			d->stage = STAGE_CHECK;
		}
		i++;
	}
}

void
decode_base64_word(struct buf *out, const char *p, size_t len)
{
	struct sink sink = { .kept = *out, .max = SIZE_MAX };
	struct decoder_state d;
	size_t i, n;

	decode_init(&d, ENCODING_BASE64, &sink);
	for (i = 0; i < len; i += n + 1) {
		n = base64_data(&d, (const unsigned char *)p + i, len - i);
		base64_flush(&d);
	}
	*out = sink.kept;
}

/* --- quoted-printable ---------------------------------------------------- */

/* d->line holds blanks, or '=' and what followed; the line ends here. */
static void
qp_line_end(struct decoder_state *d, const char *eol, size_t len)
{
	size_t n = d->line_len;

	while (n > 0 && (d->line[n - 1] == ' ' || d->line[n - 1] == '\t' ||
	    d->line[n - 1] == '\r'))
		n--;
	/* '=' and blanks to the end: a soft break. */
	if (n > 0 && d->line[n - 1] == '=') {
		decode_put(d->sink, d->line, n - 1);
	} else {
		decode_put(d->sink, d->line, n);
		decode_put(d->sink, eol, len);
	}
	d->line_len = 0;
}

/* What was held back is text after all. */
static void
qp_release(struct decoder_state *d)
{
	decode_put(d->sink, d->line, d->line_len);
	d->line_len = 0;
}

static bool
qp_holds(const struct decoder_state *d, unsigned char c)
{
	return d->line_len > 0 && d->line[d->line_len - 1] == c;
}

/* A byte while something is held back. */
static void
qp_held(struct decoder_state *d, unsigned char c)
{
	unsigned char *line = d->line, byte;
	size_t n = d->line_len;

	if (c == '\n') {
		/* "\r\n" and "\n" both end the line; "\r" was held. */
		if (qp_holds(d, '\r')) {
			d->line_len--;
			qp_line_end(d, "\r\n", 2);
		} else {
			qp_line_end(d, "\n", 1);
		}
		return;
	}
	if (n >= 2 && line[n - 2] == '=' && hex_digit(line[n - 1]) >= 0 &&
	    hex_digit(c) >= 0) {
		byte = (unsigned char)(hex_digit(line[n - 1]) << 4 |
		    hex_digit(c));
		decode_put(d->sink, line, n - 2);
		decode_put(d->sink, &byte, 1);
		d->line_len = 0;
		return;
	}
	if (c == ' ' || c == '\t' || c == '\r' ||
	    (hex_digit(c) >= 0 && qp_holds(d, '='))) {
		if (n == sizeof(d->line))
			qp_release(d);
		d->line[d->line_len++] = c;
		return;
	}
	qp_release(d);
	if (c == '=')
		d->line[d->line_len++] = c;
	else
		decode_put(d->sink, &c, 1);
}

/* Bytes from p that stand for themselves, line ends included. */
static size_t
qp_plain(const unsigned char *p, size_t len)
{
	size_t n = 0;

	while (n < len) {
		if (p[n] > ' ' && p[n] != '=')
			n++;
		else if (p[n] == '\n')
			n++;
		else if (p[n] == '\r' && n + 1 < len && p[n + 1] == '\n')
			n += 2;
		else if (p[n] == ' ' && n + 1 < len && p[n + 1] > ' ' &&
		    p[n + 1] != '=')
			n++; /* a blank inside a line */
		else if (p[n] == '=' || p[n] == ' ' || p[n] == '\t' ||
		    p[n] == '\r')
			break;
		else
			n++; /* control characters */
	}
	return n;
}

static void
qp_feed(struct decoder_state *d, const unsigned char *p, size_t len)
{
	unsigned char byte;
	size_t i = 0, n;

	while (i < len) {
		if (d->line_len > 0) {
			qp_held(d, p[i++]);
			continue;
		}
		if ((n = qp_plain(p + i, len - i)) > 0) {
			decode_put(d->sink, p + i, n);
			i += n;
			continue;
		}
		if (p[i] == '=' && i + 2 < len && hex_pair(p + i + 1) >= 0) {
			byte = (unsigned char)hex_pair(p + i + 1);
			decode_put(d->sink, &byte, 1);
			i += 3;
			continue;
		}
		/* It depends on what follows. */
		d->line[d->line_len++] = p[i++];
	}
}

static void
qp_end(struct decoder_state *d)
{
	size_t i;

	for (i = 0; i < d->line_len && d->line[i] != '='; i++)
		;
	/* A final '=' is dropped; half an escape stays. */
	if (i + 1 < d->line_len && hex_digit(d->line[i + 1]) >= 0)
		i = d->line_len;
	decode_put(d->sink, d->line, i);
	d->line_len = 0;
}

/* --- uuencode ------------------------------------------------------------ */

int
decode_uu_line(unsigned char *out, const unsigned char *p, size_t len)
{
	size_t want, need, i;
	uint32_t bits;
	unsigned char quad[4];
	int n = 0, k;

	while (len > 0 && (p[len - 1] == '\r' || p[len - 1] == '\n'))
		len--;
	if (len == 0 || p[0] < 0x20 || p[0] > 0x60)
		return -1;
	want = (size_t)((p[0] - 0x20) & 0x3F);
	need = (want + 2) / 3 * 4;
	/* Trailing blanks may have been lost; a checksum may have come. */
	if (want > 45 || len - 1 > need + 2 ||
	    (len - 1 < need && len - 1 + 2 < (want * 4 + 2) / 3))
		return -1;
	for (i = 0; i < need; i += 4) {
		for (k = 0; k < 4; k++) {
			quad[k] = 1 + i + (size_t)k < len
			    ? p[1 + i + (size_t)k] : ' ';
			if (quad[k] < 0x20 || quad[k] > 0x60)
				return -1;
			quad[k] = (quad[k] - 0x20) & 0x3F;
		}
		bits = (uint32_t)quad[0] << 18 | (uint32_t)quad[1] << 12 |
		    (uint32_t)quad[2] << 6 | quad[3];
		for (k = 0; k < 3 && n < (int)want; k++)
			out[n++] = (unsigned char)(bits >> (16 - 8 * k));
	}
	return n;
}

static void
uu_line(struct decoder_state *d)
{
	unsigned char out[48];
	int n;

	if (d->line_len >= 6 && memcmp(d->line, "begin ", 6) == 0)
		n = 0;
	else if (d->line_len >= 3 && memcmp(d->line, "end", 3) == 0)
		n = 0;
	else
		n = decode_uu_line(out, d->line, d->line_len);
	if (n > 0)
		decode_put(d->sink, out, (size_t)n);
	d->line_len = 0;
}

static void
uu_feed(struct decoder_state *d, const unsigned char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (d->line_len < sizeof(d->line))
			d->line[d->line_len++] = p[i];
		if (p[i] == '\n')
			uu_line(d);
	}
}

/* ------------------------------------------------------------------------- */

void
decode_feed(struct decoder_state *d, const unsigned char *p, size_t len)
{
	switch (d->encoding) {
	case ENCODING_BASE64:
		base64_feed(d, p, len);
		break;
	case ENCODING_QP:
		qp_feed(d, p, len);
		break;
	case ENCODING_UU:
		uu_feed(d, p, len);
		break;
	case ENCODING_NONE:
		decode_put(d->sink, p, len);
		break;
	}
}

void
decode_end(struct decoder_state *d)
{
	switch (d->encoding) {
	case ENCODING_BASE64:
		if (d->stage == STAGE_CHECK && !d->is_done)
			base64_check(d);
		base64_flush(d);
		break;
	case ENCODING_QP:
		qp_end(d);
		break;
	case ENCODING_UU:
		if (d->line_len > 0)
			uu_line(d);
		break;
	case ENCODING_NONE:
		break;
	}
}
