/*
 * charset.c - bytes of any charset to UTF-8.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * Labels lie.  A table says what each really means in mail (gb2312 is gb18030,
 * iso-8859-1 is windows-1252); a label outside the table is unknown, and where
 * there is no label, or the bytes cannot be what it says, they are looked at.
 */
#include "mime/charset.h"

#include "base/buf.h"
#include "base/text.h"
#include "mime/detect.h"

#include <ctype.h>

#include "mime/charset_labels.h"

#define KEY_MAX 48
/* Bytes of UTF-8 that one byte can become, in any charset. */
#define OUTPUT_MAX 3

/* --- labels -------------------------------------------------------------- */

static int
charset_compare_labels(const void *key, const void *label)
{
	return strcmp(key, ((const struct label *)label)->key);
}

/* -1: the table does not have it. */
static int
charset_find_key(const char *key)
{
	const struct label *found = bsearch(key, labels,
	    sizeof(labels) / sizeof(labels[0]), sizeof(labels[0]),
	    charset_compare_labels);

	return found == NULL ? -1 : (int)found->means;
}

/* Letters and digits up to a byte of `stop`. */
static void
charset_make_key(char key[KEY_MAX], const char *label, size_t len,
    const char *stop)
{
	size_t i, n = 0;

	for (i = 0; i < len && n + 1 < KEY_MAX; i++) {
		if (label[i] == '\0' || (n > 0 &&
		    strchr(stop, label[i]) != NULL))
			break;
		if (isalnum((unsigned char)label[i]))
			key[n++] = (char)tolower((unsigned char)label[i]);
	}
	key[n] = '\0';
}

enum charset
charset_find(const char *label, size_t len)
{
	static const char *const prefixes[] = { "charset", "x", "cs" };
	char key[KEY_MAX];
	size_t i, n;
	int found;

	if (label == NULL)
		return CHARSET_GUESSED;
	charset_make_key(key, label, len, "");
	if ((found = charset_find_key(key)) >= 0)
		return (enum charset)found;
	/* "iso-8859-1 (Latin)", "utf-8;format=flowed", "charset=x-win-1251" */
	charset_make_key(key, label, len, " \t(;,/");
	for (i = 0; (found = charset_find_key(key)) < 0 &&
	    i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		n = strlen(prefixes[i]);
		if (strncmp(key, prefixes[i], n) == 0)
			memmove(key, key + n, strlen(key + n) + 1);
	}
	return found < 0 ? CHARSET_GUESSED : (enum charset)found;
}

bool
charset_is_known(const char *label, size_t len)
{
	return charset_find(label, len) != CHARSET_GUESSED;
}

/* --- conversion ---------------------------------------------------------- */

static size_t
charset_ascii_run(const unsigned char *p, size_t len)
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
			i += charset_ascii_run(p + i, len - i);
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
charset_from_utf8(struct arena *arena, const char *bytes, size_t len,
    bool is_valid, size_t *len_r)
{
	if (is_valid && memchr(bytes, '\0', len) == NULL) {
		*len_r = len;
		return bytes;
	}
	return text_clean(arena, bytes, len, len_r);
}

/* All but UTF-8.  Counts what means nothing there. */
static void
charset_convert_into(struct buf *out, enum charset charset, const char *bytes,
    size_t len, size_t *n_bad)
{
	bool has_ascii = charset >= CHARSET_GB18030;
	char *to = buf_reserve(out, len * OUTPUT_MAX + 8);
	struct codec c;
	uint32_t code;
	size_t n;

	codec_init(&c, charset, bytes, len);
	while (codec_has_more(&c)) {
		/* A NUL is left to the codec, which drops it. */
		if (has_ascii && c.second == 0 && (int8_t)*c.p > 0) {
			n = charset_ascii_run(c.p, (size_t)(c.end - c.p));
			n = strnlen((const char *)c.p, n);
			memcpy(to, c.p, n);
			to += n;
			c.p += n;
		} else if ((code = codec_next(&c)) != 0) {
			to += text_encode(to, code);
		}
	}
	out->len = (size_t)(to - out->data);
	*n_bad = c.n_bad;
}

static const char *
charset_by_codec(struct arena *arena, enum charset charset, const char *bytes,
    size_t len, size_t *len_r)
{
	struct buf out = BUF_INIT;
	const char *text;
	size_t n_bad;

	charset_convert_into(&out, charset, bytes, len, &n_bad);
	if (n_bad > 0 && charset >= CHARSET_GB18030 &&
	    text_is_utf8(bytes, len)) {
		text = charset_from_utf8(arena, bytes, len, true, len_r);
	} else {
		text = arena_strndup(arena, buf_str(&out), out.len);
		*len_r = out.len;
	}
	buf_release(&out);
	return text;
}

/* --- guesses ------------------------------------------------------------- */

/* A byte that is often the upper one of a unit: letters, kana, hanzi. */
static bool
is_upper_byte(unsigned char c)
{
	return c <= 0x06 || c == 0x0E || c == 0x20 || c == 0x30 || c == 0xFF ||
	    (c >= 0x4E && c <= 0x9F) || (c >= 0xAC && c <= 0xD7);
}

static enum charset
charset_utf16_order(const char *bytes, size_t len)
{
	const unsigned char *p = (const unsigned char *)bytes;
	size_t i, big = 0, little = 0;

	for (i = 0; i + 1 < len && i < 4096; i += 2) {
		big += is_upper_byte(p[i]) + 2 * (p[i] == 0);
		little += is_upper_byte(p[i + 1]) + 2 * (p[i + 1] == 0);
	}
	return big > little ? CHARSET_UTF16BE : CHARSET_UTF16LE;
}

/* Every second byte is NUL, or nearly. */
static bool
is_utf16(const char *bytes, size_t len)
{
	size_t i, n = 0;

	if (len > 1024)
		len = 1024;
	if (len < 4 || memchr(bytes, '\0', len) == NULL)
		return false;
	for (i = 0; i < len; i++)
		n += bytes[i] == '\0';
	return n >= len / 3 && n <= len / 2 + 1;
}

/* What bytes without a label that can be believed are; never _GUESSED. */
static enum charset
charset_guess(const char *bytes, size_t len, bool *is_valid)
{
	bool is_mostly = is_mostly_utf8(bytes, len, is_valid);
	enum charset charset = CHARSET_UTF8;

	if (is_utf16(bytes, len))
		return charset_utf16_order(bytes, len);
	if (*is_valid)
		charset = detect_escapes(bytes, len);
	else if (!is_mostly || len <= 64)
		charset = detect_charset(bytes, len);
	return charset == CHARSET_GUESSED ? CHARSET_UTF8 : charset;
}

/* The mark says more than the label; it is no part of the text. */
static enum charset
charset_read_mark(enum charset charset, const char **bytes, size_t *len)
{
	static const struct {
		const char *mark;
		size_t len;
		enum charset charset;
	} marks[] = { { "\xEF\xBB\xBF", 3, CHARSET_UTF8 },
		{ "\xFF\xFE\0\0", 4, CHARSET_UTF32 },
		{ "\0\0\xFE\xFF", 4, CHARSET_UTF32BE },
		{ "\xFF\xFE", 2, CHARSET_UTF16LE },
		{ "\xFE\xFF", 2, CHARSET_UTF16BE } };
	bool is_unicode = charset >= CHARSET_UTF16 &&
	    charset <= CHARSET_UTF32BE;
	size_t i;

	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (*len < marks[i].len ||
		    memcmp(*bytes, marks[i].mark, marks[i].len) != 0)
			continue;
		if (i > 0 && !is_unicode && charset != CHARSET_GUESSED)
			continue;
		*bytes += marks[i].len;
		*len -= marks[i].len;
		return marks[i].charset;
	}
	return charset;
}

const char *
charset_convert(struct arena *arena, enum charset charset, const char *bytes,
    size_t len, size_t *len_r)
{
	bool is_valid = false;

	charset = charset_read_mark(charset, &bytes, &len);
	if (charset == CHARSET_UTF16)
		charset = charset_utf16_order(bytes, len);
	if (charset == CHARSET_GUESSED)
		charset = charset_guess(bytes, len, &is_valid);
	else if (charset == CHARSET_UTF8 &&
	    !is_mostly_utf8(bytes, len, &is_valid))
		charset = charset_guess(bytes, len, &is_valid);
	if (charset == CHARSET_UTF8)
		return charset_from_utf8(arena, bytes, len, is_valid, len_r);
	return charset_by_codec(arena, charset, bytes, len, len_r);
}

const char *
charset_decode(struct arena *arena, const char *label, size_t label_len,
    const char *bytes, size_t len, size_t *len_r)
{
	return charset_convert(arena, charset_find(label, label_len), bytes,
	    len, len_r);
}

enum charset
charset_of_raw(const char *bytes, size_t len, enum charset hint)
{
	enum charset escaped = detect_escapes(bytes, len);
	struct buf out = BUF_INIT;
	size_t n_bad = 1;

	if (escaped != CHARSET_GUESSED)
		return escaped;
	if (text_is_utf8(bytes, len))
		return CHARSET_UTF8;
	if (hint >= CHARSET_GB18030)
		charset_convert_into(&out, hint, bytes, len, &n_bad);
	buf_release(&out);
	return n_bad == 0 ? hint : detect_charset(bytes, len);
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
		    strchr("-_.:", p[n]) != NULL) && p[n] != '\0'; n++)
			;
		*len_r = n;
		return n > 0 ? p : NULL;
	}
	return NULL;
}
