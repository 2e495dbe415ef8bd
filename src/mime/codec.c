/*
 * codec.c - bytes of a charset to code points.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * By tables of our own, those of the WHATWG Encoding Standard: what mail is
 * written in is what browsers read.  They are constants of the program, so
 * that nothing is opened, loaded or allocated, and all children share them.
 * A byte that means nothing gives U+FFFD; if what follows it is ASCII, that
 * is read again by itself.
 */
#include "mime/codec.h"

#include <string.h>
#include <uchar.h>

#include "mime/charset_tables.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static uint32_t
codec_fail(struct codec *c, unsigned n)
{
	c->p += n;
	c->n_bad++;
	return CODEC_BAD;
}

/* A pair of bytes: `code` and both are read, or it is none. */
static uint32_t
codec_pair(struct codec *c, uint32_t code)
{
	if (code == CODEC_BAD)
		return codec_fail(c, c->p[1] < 0x80 ? 1 : 2);
	c->p += 2;
	return code;
}

uint32_t
codec_byte(enum charset charset, unsigned byte)
{
	uint32_t code = byte;

	if (byte >= 0x80)
		code = single_bytes[charset - CHARSET_IBM866][byte - 0x80];
	return code >= 0x80 && code < 0xA0 ? CODEC_BAD : code;
}

static uint32_t
codec_from_set(const char16_t *set, size_t size, size_t i)
{
	return i < size ? set[i] : CODEC_BAD;
}

#define FROM(set, i) codec_from_set(set, LENGTH(set) - 1, i)

uint32_t
codec_cell(enum codec_set set, unsigned row, unsigned cell)
{
	unsigned i = row * 94 + cell;

	switch (set) {
	case SET_ASCII:
		return cell + 0x21;
	case SET_JIS_ROMAN:
		return cell == 0x5C - 0x21 ? 0xA5 : cell == 0x7E - 0x21 ? 0x203E
		    : cell + 0x21;
	case SET_KATAKANA:
		return cell < 63 ? 0xFF61 + cell : CODEC_BAD;
	case SET_LATIN1:
		return 0xA1 + cell;
	case SET_GREEK:
		return codec_byte(CHARSET_ISO88597, 0xA1 + cell);
	case SET_JIS0208:
		return FROM(jis0208, i);
	case SET_JIS0212:
		return FROM(jis0212, i);
	case SET_GB2312:
		return FROM(gb18030, (row + 0x20) * 190 + cell + 0x60);
	case SET_KSC5601:
		return FROM(ksc5601, (row + 0x20) * 190 + cell + 0x60);
	case SET_CNS1:
		return FROM(cns1, i);
	case SET_CNS2:
		return FROM(cns2, i);
	}
	return CODEC_BAD;
}

static bool
is_high(unsigned char c)
{
	return c >= 0xA1 && c <= 0xFE;
}

/* --- Chinese and Korean -------------------------------------------------- */

static uint32_t
codec_gb_four(uint32_t pointer)
{
	size_t low = 0, high = LENGTH(gb18030_ranges), middle;

	if ((pointer > 39419 && pointer < 189000) || pointer > 1237575)
		return CODEC_BAD;
	if (pointer == 7457)
		return 0xE7C7;
	while (high - low > 1) {
		middle = (low + high) / 2;
		if (gb18030_ranges[middle][0] <= pointer)
			low = middle;
		else
			high = middle;
	}
	return gb18030_ranges[low][1] + pointer - gb18030_ranges[low][0];
}

static uint32_t
codec_next_gb18030(struct codec *c)
{
	const unsigned char *p = c->p;
	uint32_t code;

	if (*p == 0x80) {
		c->p++;
		return 0x20AC;
	}
	if (*p == 0xFF || c->end - p < 2)
		return codec_fail(c, 1);
	if (p[1] >= 0x30 && p[1] <= 0x39) {
		if (c->end - p < 4 || p[2] < 0x81 || p[2] == 0xFF ||
		    p[3] < 0x30 || p[3] > 0x39)
			return codec_fail(c, 1);
		code = codec_gb_four((((p[0] - 0x81u) * 10 + p[1] - 0x30u) *
		    126 + p[2] - 0x81u) * 10 + p[3] - 0x30u);
		if (code == CODEC_BAD)
			return codec_fail(c, 4);
		c->p += 4;
		return code;
	}
	if (p[1] < 0x40 || p[1] == 0x7F || p[1] == 0xFF)
		return codec_pair(c, CODEC_BAD);
	return codec_pair(c, FROM(gb18030, (p[0] - 0x81u) * 190 + p[1] -
	    (p[1] > 0x7F ? 0x41u : 0x40u)));
}

/* Two of HKSCS are a letter and its mark. */
static uint32_t
codec_big5_mark(unsigned pointer, uint32_t *second)
{
	static const struct {
		unsigned pointer;
		uint32_t first, second;
	} marks[] = { { 1133, 0xCA, 0x304 }, { 1135, 0xCA, 0x30C },
		{ 1164, 0xEA, 0x304 }, { 1166, 0xEA, 0x30C } };
	size_t i;

	for (i = 0; i < LENGTH(marks); i++)
		if (marks[i].pointer == pointer) {
			*second = marks[i].second;
			return marks[i].first;
		}
	return 0;
}

static bool
is_big5_astral(unsigned pointer)
{
	size_t low = 0, high = LENGTH(big5_astral), middle;

	while (high - low > 1) {
		middle = (low + high) / 2;
		if (big5_astral[middle] <= pointer)
			low = middle;
		else
			high = middle;
	}
	return big5_astral[low] == pointer;
}

static uint32_t
codec_next_big5(struct codec *c)
{
	const unsigned char *p = c->p;
	unsigned pointer;
	uint32_t code;

	if (*p == 0x80 || *p == 0xFF || c->end - p < 2)
		return codec_fail(c, 1);
	if (p[1] < 0x40 || p[1] == 0xFF || (p[1] > 0x7E && p[1] < 0xA1))
		return codec_pair(c, CODEC_BAD);
	pointer = (p[0] - 0x81u) * 157 + p[1] - (p[1] < 0x7F ? 0x40u : 0x62u);
	if ((code = codec_big5_mark(pointer, &c->second)) != 0)
		return codec_pair(c, code);
	code = FROM(big5, pointer);
	return codec_pair(c, is_big5_astral(pointer) ? code + 0x20000 : code);
}

static uint32_t
codec_next_euckr(struct codec *c)
{
	const unsigned char *p = c->p;

	if (*p == 0x80 || *p == 0xFF || c->end - p < 2)
		return codec_fail(c, 1);
	if (p[1] < 0x41 || p[1] == 0xFF)
		return codec_pair(c, CODEC_BAD);
	return codec_pair(c, FROM(ksc5601, (p[0] - 0x81u) * 190 + p[1] -
	    0x41u));
}

static uint32_t
codec_next_euctw(struct codec *c)
{
	const unsigned char *p = c->p;

	if (*p == 0x8E && c->end - p >= 4 && is_high(p[2]) && is_high(p[3])) {
		c->p += 2;
		return codec_pair(c, p[1] == 0xA1 || p[1] == 0xA2 ?
		    codec_cell(p[1] == 0xA1 ? SET_CNS1 : SET_CNS2,
		    p[2] - 0xA1u, p[3] - 0xA1u) : CODEC_BAD);
	}
	if (!is_high(*p) || c->end - p < 2)
		return codec_fail(c, 1);
	return codec_pair(c, !is_high(p[1]) ? CODEC_BAD
	    : codec_cell(SET_CNS1, p[0] - 0xA1u, p[1] - 0xA1u));
}

/* --- Japanese ------------------------------------------------------------ */

static uint32_t
codec_next_shiftjis(struct codec *c)
{
	const unsigned char *p = c->p;
	unsigned pointer;

	if (*p >= 0xA1 && *p <= 0xDF) {
		c->p++;
		return 0xFF61u + *p - 0xA1u;
	}
	if (*p == 0x80 || *p == 0xA0 || *p > 0xFC || c->end - p < 2)
		return codec_fail(c, 1);
	if (p[1] < 0x40 || p[1] == 0x7F || p[1] > 0xFC)
		return codec_pair(c, CODEC_BAD);
	pointer = (*p - (*p < 0xA0 ? 0x81u : 0xC1u)) * 188 + p[1] -
	    (p[1] < 0x7F ? 0x40u : 0x41u);
	if (pointer >= 8836 && pointer <= 10715) /* characters of users */
		return codec_pair(c, 0xE000 + pointer - 8836);
	return codec_pair(c, FROM(jis0208, pointer));
}

static uint32_t
codec_next_eucjp(struct codec *c)
{
	const unsigned char *p = c->p;

	if (*p == 0x8E && c->end - p >= 2 && p[1] >= 0xA1 && p[1] <= 0xDF)
		return codec_pair(c, 0xFF61u + p[1] - 0xA1u);
	if (*p == 0x8F && c->end - p >= 3 && is_high(p[1]) && is_high(p[2])) {
		c->p++;
		return codec_pair(c, codec_cell(SET_JIS0212, p[1] - 0xA1u,
		    p[2] - 0xA1u));
	}
	if (!is_high(*p) || c->end - p < 2)
		return codec_fail(c, 1);
	return codec_pair(c, !is_high(p[1]) ? CODEC_BAD
	    : codec_cell(SET_JIS0208, p[0] - 0xA1u, p[1] - 0xA1u));
}

/* --- others -------------------------------------------------------------- */

static uint32_t
codec_next_single(struct codec *c)
{
	uint32_t code = codec_byte(c->charset, *c->p++);

	c->n_bad += code == CODEC_BAD;
	return code;
}

static uint32_t
codec_next_utf16(struct codec *c)
{
	bool is_big = c->charset == CHARSET_UTF16BE;
	const unsigned char *p = c->p;
	uint32_t unit, low;

	if (c->end - p < 2)
		return codec_fail(c, 1);
	unit = is_big ? p[0] << 8 | p[1] : p[1] << 8 | p[0];
	if (unit < 0xD800 || unit > 0xDFFF) {
		c->p += 2;
		return unit;
	}
	if (unit > 0xDBFF || c->end - p < 4)
		return codec_fail(c, 2);
	low = is_big ? p[2] << 8 | p[3] : p[3] << 8 | p[2];
	if (low < 0xDC00 || low > 0xDFFF)
		return codec_fail(c, 2);
	c->p += 4;
	return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
}

static uint32_t
codec_next_utf32(struct codec *c)
{
	const unsigned char *p = c->p;
	uint32_t code;

	if (c->end - p < 4)
		return codec_fail(c, (unsigned)(c->end - p));
	code = c->charset == CHARSET_UTF32BE
	    ? (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]
	    : (uint32_t)p[3] << 24 | p[2] << 16 | p[1] << 8 | p[0];
	if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
		return codec_fail(c, 4);
	c->p += 4;
	return code;
}

void
codec_init(struct codec *c, enum charset charset, const void *bytes, size_t len)
{
	*c = (struct codec){ .p = bytes, .charset = charset };
	c->end = c->p + len;
	if (charset == CHARSET_ISO2022KR)
		c->g1 = SET_KSC5601;
	else if (charset == CHARSET_ISO2022JP)
		c->g1 = SET_KATAKANA;
	else if (charset == CHARSET_ISO2022CN)
		c->g1 = SET_GB2312;
}

uint32_t
codec_next(struct codec *c)
{
	static uint32_t (*const readers[])(struct codec *) = {
		[CHARSET_UTF7] = codec_next_utf7,
		[CHARSET_UTF16LE] = codec_next_utf16,
		[CHARSET_UTF16BE] = codec_next_utf16,
		[CHARSET_UTF32] = codec_next_utf32,
		[CHARSET_UTF32BE] = codec_next_utf32,
		[CHARSET_ISO2022JP] = codec_next_iso2022,
		[CHARSET_ISO2022KR] = codec_next_iso2022,
		[CHARSET_ISO2022CN] = codec_next_iso2022,
		[CHARSET_HZ] = codec_next_hz,
		[CHARSET_GB18030] = codec_next_gb18030,
		[CHARSET_BIG5] = codec_next_big5,
		[CHARSET_EUCKR] = codec_next_euckr,
		[CHARSET_SHIFTJIS] = codec_next_shiftjis,
		[CHARSET_EUCJP] = codec_next_eucjp,
		[CHARSET_EUCTW] = codec_next_euctw,
	};
	uint32_t code = c->second;

	if (code != 0) {
		c->second = 0;
		return code;
	}
	if (c->charset >= CHARSET_GB18030 && *c->p < 0x80)
		return *c->p++;
	if (c->charset >= LENGTH(readers))
		return codec_next_single(c);
	return readers[c->charset](c);
}
