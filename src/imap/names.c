/*
 * names.c - folder names for people (modified UTF-7, RFC 3501 5.1.3).
 *
 * Runs in: hot, pool and job children.  Never blocks.
 *
 * By hand and not with iconv: its UTF-7-IMAP lives in a module that minimal
 * systems do not install, and a confined child could not load it.
 */
#include "imap/names.h"

#include "base/buf.h"
#include "base/text.h"

#include <strings.h>

static int
digit_value(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz"
				     "0123456789+,";
	const char *p = c != '\0' ? strchr(digits, c) : NULL;

	return p != NULL ? (int)(p - digits) : -1;
}

static void
add_utf8(struct buf *out, uint32_t c)
{
	char bytes[4];
	unsigned n = text_encode(bytes, c);

	buf_add(out, bytes, n);
}

/* One UTF-16 unit; *high holds the first half of a pair. */
static bool
add_unit(struct buf *out, uint32_t unit, uint32_t *high)
{
	if (*high != 0) {
		if (unit < 0xDC00 || unit > 0xDFFF)
			return false;
		add_utf8(out, 0x10000 + ((*high - 0xD800) << 10) +
		    (unit - 0xDC00));
		*high = 0;
		return true;
	}
	if (unit >= 0xD800 && unit <= 0xDBFF) {
		*high = unit;
		return true;
	}
	if ((unit >= 0xDC00 && unit <= 0xDFFF) || unit < 0x20 || unit == 0x7F)
		return false;
	add_utf8(out, unit);
	return true;
}

/* "&...-" at *p; moves behind it. */
static bool
decode_shifted(struct buf *out, const char **p)
{
	const char *s = *p + 1;
	uint32_t bits = 0, high = 0;
	int n_bits = 0, value;

	if (*s == '-') {
		buf_addc(out, '&');
		*p = s + 1;
		return true;
	}
	for (; (value = digit_value(*s)) >= 0; s++) {
		bits = bits << 6 | (uint32_t)value;
		n_bits += 6;
		if (n_bits < 16)
			continue;
		n_bits -= 16;
		if (!add_unit(out, bits >> n_bits & 0xFFFF, &high))
			return false;
		bits &= (1u << n_bits) - 1;
	}
	if (*s != '-' || n_bits >= 6 || bits != 0 || high != 0)
		return false;
	*p = s + 1;
	return true;
}

static bool
names_decode(struct buf *out, const char *wire)
{
	const char *p = wire;

	while (*p != '\0') {
		if (*p == '&') {
			if (!decode_shifted(out, &p))
				return false;
			continue;
		}
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7F)
			return false;
		buf_addc(out, *p++);
	}
	return true;
}

/* What the bytes 80 to 9F are in Windows-1252 (WHATWG Encoding Standard,
 * index-windows-1252); all others are what they are in Latin-1. */
static const uint16_t windows_1252[32] = { 0x20AC, 0x81, 0x201A, 0x0192,
	0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152,
	0x8D, 0x017D, 0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
	0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D, 0x017E,
	0x0178 };

static void
add_readable(struct buf *out, uint32_t c)
{
	bool is_control = c < 0x20 || (c >= 0x7F && c < 0xA0);

	add_utf8(out, is_control ? 0xFFFD : c);
}

/* No modified UTF-7: some servers send UTF-8 (which UTF8=ACCEPT allows), some
 * what their files are called in, mostly Latin-1. */
static void
decode_raw(struct buf *out, const char *wire)
{
	const unsigned char *p = (const unsigned char *)wire;
	size_t i, len = strlen(wire);
	unsigned n;

	if (text_is_utf8(wire, len)) {
		for (i = 0; i < len; i += n) {
			n = text_utf8_char(p + i, len - i);
			add_readable(out, text_code(p + i, n));
		}
		return;
	}
	for (i = 0; i < len; i++)
		add_readable(out, p[i] >= 0x80 && p[i] < 0xA0 ?
			windows_1252[p[i] - 0x80] : p[i]);
}

bool
name_is_inbox(const char *wire)
{
	return strcasecmp(wire, "INBOX") == 0;
}

const char *
name_for_people(struct arena *arena, const char *wire)
{
	struct buf out = BUF_INIT;
	char *name;

	if (name_is_inbox(wire))
		return "INBOX";
	if (!names_decode(&out, wire)) {
		buf_reset(&out);
		decode_raw(&out, wire);
	}
	name = arena_strdup(arena, buf_str(&out));
	buf_release(&out);
	return name;
}
