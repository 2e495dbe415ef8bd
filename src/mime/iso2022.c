/*
 * iso2022.c - charsets of seven bits: ISO-2022-JP, -KR, -CN, HZ and UTF-7.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * One reader for the whole ISO 2022 family: which set an escape sequence
 * chooses is a table.  As mailers write it rather than as it is defined:
 * half-width katakana by ESC ( I, by shift-out or with the eighth bit, the
 * rows of NEC and IBM among those of JIS X 0208 (the table has them), a set
 * that is still chosen at the end of a line is left there.
 */
#include "mime/codec.h"

#include <string.h>

#define ESC 0x1B
#define SHIFT_OUT 0x0E
#define SHIFT_IN 0x0F

static const struct escape {
	const char *text; /* behind ESC */
	unsigned char place; /* G0 to G2; 3: nowhere */
	enum codec_set set;
} escapes[] = {
	{ "(B", 0, SET_ASCII }, { "(J", 0, SET_JIS_ROMAN },
	{ "(H", 0, SET_JIS_ROMAN }, { "(I", 0, SET_KATAKANA },
	{ "(A", 0, SET_ASCII }, { "$@", 0, SET_JIS0208 },
	{ "$B", 0, SET_JIS0208 }, { "$(@", 0, SET_JIS0208 },
	{ "$(B", 0, SET_JIS0208 }, { "$(D", 0, SET_JIS0212 },
	{ "$A", 0, SET_GB2312 }, { "$(A", 0, SET_GB2312 },
	{ "$(C", 0, SET_KSC5601 }, { "$(G", 0, SET_CNS1 },
	{ "$(H", 0, SET_CNS2 },
	/* JIS X 0213, whose first plane is JIS X 0208 and more. */
	{ "$(O", 0, SET_JIS0208 }, { "$(Q", 0, SET_JIS0208 },
	{ "$(P", 0, SET_JIS0212 }, { "&@", 3, SET_ASCII },
	{ "$)A", 1, SET_GB2312 }, { "$)C", 1, SET_KSC5601 },
	{ "$)E", 1, SET_GB2312 }, { "$)G", 1, SET_CNS1 },
	{ ")I", 1, SET_KATAKANA }, { "$*H", 2, SET_CNS2 },
	{ ".A", 2, SET_LATIN1 }, { ".F", 2, SET_GREEK },
};

static bool
is_two_bytes(enum codec_set set)
{
	return set >= SET_JIS0208;
}

/* false: no escape sequence that is known. */
static bool
iso2022_escape(struct codec *c)
{
	size_t i, len;

	for (i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
		len = strlen(escapes[i].text);
		if ((size_t)(c->end - c->p) <= len ||
		    memcmp(c->p + 1, escapes[i].text, len) != 0)
			continue;
		c->p += len + 1;
		if (escapes[i].place == 0)
			c->g0 = escapes[i].set;
		else if (escapes[i].place == 1)
			c->g1 = escapes[i].set;
		else if (escapes[i].place == 2)
			c->g2 = escapes[i].set;
		return true;
	}
	return false;
}

/* A character of a set; eight bits are as seven. */
static uint32_t
iso2022_character(struct codec *c, enum codec_set set)
{
	unsigned first = c->p[0] & 0x7F, second;

	if (!is_two_bytes(set)) {
		c->p++;
		return codec_cell(set, 0, first - 0x21);
	}
	second = c->end - c->p < 2 ? 0 : c->p[1] & 0x7F;
	if (second < 0x21 || second == 0x7F) {
		c->p++; /* cut */
		c->n_bad++;
		return CODEC_BAD;
	}
	c->p += 2;
	first = codec_cell(set, first - 0x21, second - 0x21);
	c->n_bad += first == CODEC_BAD;
	return first;
}

static uint32_t
iso2022_control(struct codec *c)
{
	unsigned char byte = *c->p;

	if (byte == ESC && c->end - c->p >= 3 && c->p[1] == 'N') {
		c->p += 2; /* the next one alone is of G2 */
		return (*c->p & 0x7F) > 0x20 && (*c->p & 0x7F) < 0x7F
		    ? iso2022_character(c, c->g2) : 0;
	}
	if (byte == ESC && iso2022_escape(c))
		return 0;
	c->p++;
	if (byte == SHIFT_OUT || byte == SHIFT_IN) {
		c->is_shifted = byte == SHIFT_OUT;
		return 0;
	}
	if (byte == '\n') {
		c->g0 = SET_ASCII;
		c->is_shifted = false;
	}
	return byte == ESC ? 0 : byte;
}

uint32_t
codec_next_iso2022(struct codec *c)
{
	enum codec_set set = c->is_shifted ? c->g1 : c->g0;
	unsigned char byte = *c->p;

	if (byte <= 0x20 || byte == 0x7F)
		return iso2022_control(c);
	if (byte >= 0x80 && !is_two_bytes(set)) {
		set = c->g1;
		if ((byte & 0x7F) <= 0x20 || byte == 0xFF) {
			c->p++;
			c->n_bad++;
			return CODEC_BAD;
		}
	}
	return iso2022_character(c, set);
}

/* --- HZ (RFC 1843) ------------------------------------------------------- */

uint32_t
codec_next_hz(struct codec *c)
{
	const unsigned char *p = c->p;
	unsigned char next = c->end - p < 2 ? 0 : p[1];

	if (*p == '~' && strchr("{}~\n", next) != NULL && next != 0) {
		c->p += 2;
		if (next == '~')
			return '~';
		c->is_shifted = next == '{';
		return 0;
	}
	if (c->end - p >= 2 && (c->is_shifted || *p >= 0x80) &&
	    (*p & 0x7F) > 0x20 && (next & 0x7F) > 0x20)
		return iso2022_character(c, SET_GB2312);
	if (*p == '\n')
		c->is_shifted = false;
	c->p++;
	return *p < 0x80 ? *p : CODEC_BAD;
}

/* --- UTF-7 (RFC 2152) ---------------------------------------------------- */

static int
utf7_digit(unsigned char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Sixteen bits of UTF-16. */
static uint32_t
utf7_unit(struct codec *c, uint32_t unit)
{
	uint32_t high = c->high;

	c->high = 0;
	if (unit >= 0xD800 && unit <= 0xDBFF) {
		c->high = unit;
		return high != 0 ? CODEC_BAD : 0;
	}
	if (unit >= 0xDC00 && unit <= 0xDFFF)
		return high == 0 ? CODEC_BAD : 0x10000 +
		    ((high - 0xD800) << 10) + (unit - 0xDC00);
	if (high == 0)
		return unit;
	c->second = unit;
	return CODEC_BAD;
}

static uint32_t
utf7_shifted(struct codec *c)
{
	int digit = utf7_digit(*c->p);
	uint32_t unit;

	if (digit < 0) {
		c->is_shifted = false;
		c->p += *c->p == '-';
		unit = c->high != 0 ? CODEC_BAD : 0;
		c->high = 0;
		return unit;
	}
	c->p++;
	c->bits = c->bits << 6 | (uint32_t)digit;
	c->n_bits += 6;
	if (c->n_bits < 16)
		return 0;
	c->n_bits -= 16;
	unit = c->bits >> c->n_bits & 0xFFFF;
	c->bits &= (1u << c->n_bits) - 1;
	return utf7_unit(c, unit);
}

uint32_t
codec_next_utf7(struct codec *c)
{
	unsigned char byte = *c->p;

	if (c->is_shifted)
		return utf7_shifted(c);
	c->p++;
	if (byte != '+')
		return byte < 0x80 ? byte : codec_byte(CHARSET_WINDOWS1252,
		    byte);
	if (c->p < c->end && *c->p == '-') {
		c->p++;
		return '+';
	}
	c->bits = c->n_bits = 0;
	c->is_shifted = c->p < c->end && utf7_digit(*c->p) >= 0;
	return c->is_shifted ? 0 : '+';
}
