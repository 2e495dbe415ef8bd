/*
 * charset.c - bytes of any charset to UTF-8.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * Labels lie.  A table says what each really means in mail (gb2312 is gb18030,
 * iso-8859-1 is windows-1252); a label outside the table is unknown, whatever
 * libc could do with it, which also keeps its rarer converters and their bugs
 * out of reach.  All converters are loaded before a child is made (a few
 * milliseconds, 1.3 MB shared): a confined child may not find them any more.
 */
#include "mime/charset.h"

#include "base/buf.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <iconv.h>

/* What to do; other values are indices into `converters`. */
enum {
	AS_GUESSED = -1,
	AS_UTF8 = -2,
	AS_1252 = -3,
	AS_UTF16 = -4,
};

#define CONVERTERS(X)                                                    \
	X(GB18030) X(CP949) X(CP932) X(BIG5_HKSCS) X(EUC_JP)             \
	X(ISO_2022_JP) X(ISO_2022_KR) X(UTF_7) X(UTF_16LE) X(UTF_16BE)   \
	X(UTF_32) X(CP1250) X(CP1251) X(CP1253) X(CP1254) X(CP1255)      \
	X(CP1256) X(CP1257) X(CP1258) X(CP874) X(CP866) X(CP437)         \
	X(CP850) X(CP852) X(ISO_8859_2) X(ISO_8859_3) X(ISO_8859_4)      \
	X(ISO_8859_5) X(ISO_8859_6) X(ISO_8859_7) X(ISO_8859_8)          \
	X(ISO_8859_10) X(ISO_8859_13) X(ISO_8859_14) X(ISO_8859_15)      \
	X(ISO_8859_16) X(KOI8_R) X(KOI8_U) X(MACINTOSH) X(EUC_TW)

enum converter {
#define X(name) CONVERT_##name,
	CONVERTERS(X)
#undef X
	    CONVERTER_COUNT
};

/* open_converter() puts '-' for '_'. */
static const char *const converters[CONVERTER_COUNT] = {
#define X(name) [CONVERT_##name] = #name,
	CONVERTERS(X)
#undef X
};

static const struct alias {
	const char *label; /* lower case, '-', '_' and blanks left out */
	int means;
} aliases[] = {
	{ "utf8", AS_UTF8 },
	{ "usascii", AS_GUESSED },
	{ "ascii", AS_GUESSED },
	{ "ansix3.41968", AS_GUESSED },
	{ "iso646us", AS_GUESSED },
	{ "iso88591", AS_1252 },
	{ "iso8859", AS_1252 },
	{ "latin1", AS_1252 },
	{ "windows1252", AS_1252 },
	{ "cp1252", AS_1252 },
	{ "ansi", AS_1252 },
	{ "unicode11utf8", AS_UTF8 },
	{ "utf8mb4", AS_UTF8 },
	{ "gb2312", CONVERT_GB18030 },
	{ "gbk", CONVERT_GB18030 },
	{ "gb18030", CONVERT_GB18030 },
	{ "cp936", CONVERT_GB18030 },
	{ "ms936", CONVERT_GB18030 },
	{ "windows936", CONVERT_GB18030 },
	{ "euccn", CONVERT_GB18030 },
	{ "xgbk", CONVERT_GB18030 },
	{ "gb231280", CONVERT_GB18030 },
	{ "ksc56011987", CONVERT_CP949 },
	{ "ksc56011989", CONVERT_CP949 },
	{ "ksc5601", CONVERT_CP949 },
	{ "euckr", CONVERT_CP949 },
	{ "cp949", CONVERT_CP949 },
	{ "ms949", CONVERT_CP949 },
	{ "uhc", CONVERT_CP949 },
	{ "windows949", CONVERT_CP949 },
	{ "korean", CONVERT_CP949 },
	{ "shiftjis", CONVERT_CP932 },
	{ "sjis", CONVERT_CP932 },
	{ "xsjis", CONVERT_CP932 },
	{ "mskanji", CONVERT_CP932 },
	{ "cp932", CONVERT_CP932 },
	{ "ms932", CONVERT_CP932 },
	{ "windows31j", CONVERT_CP932 },
	{ "cswindows31j", CONVERT_CP932 },
	{ "big5", CONVERT_BIG5_HKSCS },
	{ "big5hkscs", CONVERT_BIG5_HKSCS },
	{ "cp950", CONVERT_BIG5_HKSCS },
	{ "xbig5", CONVERT_BIG5_HKSCS },
	{ "eucjp", CONVERT_EUC_JP },
	{ "xeucjp", CONVERT_EUC_JP },
	{ "euctw", CONVERT_EUC_TW },
	{ "iso2022jp", CONVERT_ISO_2022_JP },
	{ "iso2022jp1", CONVERT_ISO_2022_JP },
	{ "iso2022jp2", CONVERT_ISO_2022_JP },
	{ "iso2022jpms", CONVERT_ISO_2022_JP },
	{ "csiso2022jp", CONVERT_ISO_2022_JP },
	{ "iso2022kr", CONVERT_ISO_2022_KR },
	{ "utf7", CONVERT_UTF_7 },
	{ "unicode11utf7", CONVERT_UTF_7 },
	{ "utf16", AS_UTF16 },
	{ "ucs2", AS_UTF16 },
	{ "iso10646ucs2", AS_UTF16 },
	{ "unicode", AS_UTF16 },
	{ "utf16le", CONVERT_UTF_16LE },
	{ "utf16be", CONVERT_UTF_16BE },
	{ "utf32", CONVERT_UTF_32 },
	{ "windows1250", CONVERT_CP1250 },
	{ "cp1250", CONVERT_CP1250 },
	{ "windows1251", CONVERT_CP1251 },
	{ "cp1251", CONVERT_CP1251 },
	{ "windows1253", CONVERT_CP1253 },
	{ "cp1253", CONVERT_CP1253 },
	{ "windows1254", CONVERT_CP1254 },
	{ "cp1254", CONVERT_CP1254 },
	{ "iso88599", CONVERT_CP1254 },
	{ "latin5", CONVERT_CP1254 },
	{ "windows1255", CONVERT_CP1255 },
	{ "cp1255", CONVERT_CP1255 },
	{ "windows1256", CONVERT_CP1256 },
	{ "cp1256", CONVERT_CP1256 },
	{ "windows1257", CONVERT_CP1257 },
	{ "cp1257", CONVERT_CP1257 },
	{ "windows1258", CONVERT_CP1258 },
	{ "cp1258", CONVERT_CP1258 },
	{ "windows874", CONVERT_CP874 },
	{ "cp874", CONVERT_CP874 },
	{ "tis620", CONVERT_CP874 },
	{ "iso885911", CONVERT_CP874 },
	{ "ibm866", CONVERT_CP866 },
	{ "cp866", CONVERT_CP866 },
	{ "ibm437", CONVERT_CP437 },
	{ "cp437", CONVERT_CP437 },
	{ "ibm850", CONVERT_CP850 },
	{ "cp850", CONVERT_CP850 },
	{ "ibm852", CONVERT_CP852 },
	{ "cp852", CONVERT_CP852 },
	{ "iso88592", CONVERT_ISO_8859_2 },
	{ "latin2", CONVERT_ISO_8859_2 },
	{ "iso88593", CONVERT_ISO_8859_3 },
	{ "iso88594", CONVERT_ISO_8859_4 },
	{ "iso88595", CONVERT_ISO_8859_5 },
	{ "iso88596", CONVERT_ISO_8859_6 },
	{ "iso88597", CONVERT_ISO_8859_7 },
	{ "iso88598", CONVERT_ISO_8859_8 },
	{ "iso88598i", CONVERT_ISO_8859_8 },
	{ "iso885910", CONVERT_ISO_8859_10 },
	{ "iso885913", CONVERT_ISO_8859_13 },
	{ "iso885914", CONVERT_ISO_8859_14 },
	{ "iso885915", CONVERT_ISO_8859_15 },
	{ "latin9", CONVERT_ISO_8859_15 },
	{ "iso885916", CONVERT_ISO_8859_16 },
	{ "koi8r", CONVERT_KOI8_R },
	{ "koi8u", CONVERT_KOI8_U },
	{ "koi8", CONVERT_KOI8_R },
	{ "macintosh", CONVERT_MACINTOSH },
	{ "xmacroman", CONVERT_MACINTOSH },
};

unsigned
charset_1252(unsigned c)
{
	static const uint16_t codes[32] = {
		0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
		0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017D, 0,
		0, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
		0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0, 0x017E, 0x0178,
	};

	if (c < 0x80 || c >= 0xA0)
		return c;
	return codes[c - 0x80] == 0 ? 0xFFFD : codes[c - 0x80];
}

static int
find_alias(const char *label, size_t len)
{
	char key[24];
	size_t i, n = 0;

	for (i = 0; i < len && label != NULL; i++) {
		if (strchr("-_ \"'", label[i]) != NULL)
			continue;
		if (n + 1 == sizeof(key))
			return AS_GUESSED;
		key[n++] = (char)tolower((unsigned char)label[i]);
	}
	key[n] = '\0';
	for (i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcmp(aliases[i].label, key) == 0)
			return aliases[i].means;
	return AS_GUESSED;
}

bool
charset_is_known(const char *label, size_t len)
{
	return find_alias(label, len) != AS_GUESSED;
}

/* (iconv_t)-1 when libc does not have it. */
static iconv_t
open_converter(int which)
{
	static iconv_t open[CONVERTER_COUNT];
	char name[24];
	char *p;

	if (open[which] != NULL) {
		if (open[which] != (iconv_t)-1)
			iconv(open[which], NULL, NULL, NULL, NULL);
		return open[which];
	}
	snprintf(name, sizeof(name), "%s", converters[which]);
	for (p = name; *p != '\0'; p++)
		if (*p == '_')
			*p = '-';
	open[which] = iconv_open("UTF-8", name);
	return open[which];
}

void
charset_init(void)
{
	int i;

	for (i = 0; i < CONVERTER_COUNT; i++)
		open_converter(i);
}

static size_t
ascii_run(const unsigned char *p, size_t len)
{
	uint64_t eight;
	size_t n = 0;

	for (; n + 8 <= len; n += 8) {
		memcpy(&eight, p + n, 8);
		if ((eight & 0x8080808080808080u) != 0)
			break;
	}
	while (n < len && p[n] < 0x80)
		n++;
	return n;
}

/* Bytes of the characters that are valid against bytes that are none. */
static bool
is_mostly_utf8(const char *bytes, size_t len, bool *is_valid)
{
	const unsigned char *p = (const unsigned char *)bytes;
	size_t i = 0, good = 0, bad = 0;
	unsigned n;

	while (i < len) {
		if (p[i] < 0x80) {
			i += ascii_run(p + i, len - i);
			continue;
		}
		n = text_utf8_char(p + i, len - i);
		good += n != 0;
		bad += n == 0;
		i += n == 0 ? 1 : n;
	}
	*is_valid = bad == 0;
	return bad <= good;
}

static const char *
from_utf8(struct arena *arena, const char *bytes, size_t len, bool is_valid,
    size_t *len_r)
{
	if (is_valid && memchr(bytes, '\0', len) == NULL) {
		*len_r = len;
		return bytes;
	}
	return text_clean(arena, bytes, len, len_r);
}

static const char *
from_1252(struct arena *arena, const char *bytes, size_t len, size_t *len_r)
{
	char *out = arena_alloc(arena, len * 3 + 4);
	size_t i, n = 0;

	for (i = 0; i < len; i++)
		if (bytes[i] != '\0')
			n += text_encode(out + n,
			    charset_1252((unsigned char)bytes[i]));
	out[n] = '\0';
	*len_r = n;
	return out;
}

static const char *
guess(struct arena *arena, const char *bytes, size_t len, size_t *len_r)
{
	bool is_valid, is_mostly = is_mostly_utf8(bytes, len, &is_valid);

	if (is_valid || (is_mostly && len > 64))
		return from_utf8(arena, bytes, len, is_valid, len_r);
	return from_1252(arena, bytes, len, len_r);
}

static const char *
convert(struct arena *arena, int which, const char *bytes, size_t len,
    size_t *len_r)
{
	iconv_t cd = open_converter(which);
	struct buf out = BUF_INIT;
	char *in = (char *)(uintptr_t)bytes, *to;
	size_t left = len, room, n;
	char *clean;

	if (cd == (iconv_t)-1)
		return guess(arena, bytes, len, len_r);
	while (left > 0) {
		room = left * 2 + 64;
		to = buf_reserve(&out, room);
		n = iconv(cd, &in, &left, &to, &room);
		out.len = (size_t)(to - out.data);
		if (n != (size_t)-1 || errno == E2BIG)
			continue;
		/* A byte that means nothing here, or cut in a character. */
		buf_adds(&out, "\xEF\xBF\xBD");
		if (errno == EINVAL || left == 0)
			break;
		in++;
		left--;
	}
	clean = text_clean(arena, buf_str(&out), out.len, len_r);
	buf_release(&out);
	return clean;
}

static const char *
from_utf16(struct arena *arena, const char *bytes, size_t len, size_t *len_r)
{
	const unsigned char *p = (const unsigned char *)bytes;
	size_t i, high = 0, low = 0;

	if (len >= 2 && p[0] == 0xFF && p[1] == 0xFE)
		return convert(arena, CONVERT_UTF_16LE, bytes + 2, len - 2,
		    len_r);
	if (len >= 2 && p[0] == 0xFE && p[1] == 0xFF)
		return convert(arena, CONVERT_UTF_16BE, bytes + 2, len - 2,
		    len_r);
	for (i = 0; i + 1 < len; i += 2) {
		high += p[i] == 0;
		low += p[i + 1] == 0;
	}
	return convert(arena, low > high ? CONVERT_UTF_16LE : CONVERT_UTF_16BE,
	    bytes, len, len_r);
}

const char *
charset_decode(struct arena *arena, const char *label, size_t label_len,
    const char *bytes, size_t len, size_t *len_r)
{
	int means = find_alias(label, label_len);
	bool is_valid;

	if (len >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0) {
		bytes += 3;
		len -= 3;
		means = AS_UTF8;
	} else if (len >= 2 && means == AS_GUESSED &&
	    (memcmp(bytes, "\xFF\xFE", 2) == 0 ||
	    memcmp(bytes, "\xFE\xFF", 2) == 0)) {
		means = AS_UTF16;
	}
	switch (means) {
	case AS_GUESSED:
		return guess(arena, bytes, len, len_r);
	case AS_UTF8:
		if (is_mostly_utf8(bytes, len, &is_valid))
			return from_utf8(arena, bytes, len, is_valid, len_r);
		return from_1252(arena, bytes, len, len_r);
	case AS_1252:
		return from_1252(arena, bytes, len, len_r);
	case AS_UTF16:
		return from_utf16(arena, bytes, len, len_r);
	default:
		return convert(arena, means, bytes, len, len_r);
	}
}

const char *
charset_in_html(const char *html, size_t len, size_t *len_r)
{
	const char *end = html + (len < 2048 ? len : 2048), *p;
	size_t n;

	for (p = html; end - p > 8; p++) {
		if (strncasecmp(p, "charset=", 8) != 0)
			continue;
		p += 8;
		if (p < end && (*p == '"' || *p == '\''))
			p++;
		for (n = 0; p + n < end && (isalnum((unsigned char)p[n]) ||
		    strchr("-_.", p[n]) != NULL) && p[n] != '\0'; n++)
			;
		*len_r = n;
		return n > 0 ? p : NULL;
	}
	return NULL;
}
