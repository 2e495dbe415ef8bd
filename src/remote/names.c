/*
 * names.c - folder names for people (modified UTF-7, RFC 3501 5.1.3).
 *
 * Runs in: hot, pool and job children.  Never blocks.
 *
 * By hand and not with iconv: its UTF-7-IMAP lives in a module that minimal
 * systems do not install, and a confined child could not load it.
 */
#include "remote/names.h"

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
decode(struct buf *out, const char *wire)
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
	if (decode(&out, wire))
		name = arena_strdup(arena, buf_str(&out));
	else
		name = text_clean(arena, wire, strlen(wire), NULL);
	buf_release(&out);
	return name;
}
