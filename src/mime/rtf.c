/*
 * rtf.c - the text of compressed RTF, as Outlook keeps it.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * A scanner, no parser: what is no text (fonts, colours, pictures, the tags of
 * HTML that was wrapped in RTF, MS-OXRTFEX) stands in groups that are left out
 * as wholes.  Groups in each other cost a bit each, not the stack.
 */
#include "mime/rtf.h"

#include "base/text.h"
#include "mime/charset.h"
#include "mime/decode.h"

#include <ctype.h>

#define DICTIONARY 4096u
#define COMPRESSED 0x75465A4Cu /* "LZFu" */
#define UNCOMPRESSED 0x414C454Du

static const char preset[] =
    "{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman "
    "\\fswiss \\fmodern \\fscript \\fdecor MS Sans SerifSymbolArialTimes New "
    "RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par "
    "\\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx";

static uint32_t
rtf_le32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	    (uint32_t)p[3] << 24;
}

struct lzfu {
	char dictionary[DICTIONARY];
	unsigned at;
	struct buf *out;
};

static void
lzfu_put(struct lzfu *z, char c)
{
	z->dictionary[z->at] = c;
	z->at = (z->at + 1) % DICTIONARY;
	buf_addc(z->out, c);
}

/* A reference to what was there before; false: the end. */
static bool
lzfu_copy(struct lzfu *z, unsigned reference)
{
	unsigned from = reference >> 4, n = (reference & 15) + 2;

	if (from == z->at)
		return false;
	while (n-- > 0) {
		lzfu_put(z, z->dictionary[from]);
		from = (from + 1) % DICTIONARY;
	}
	return true;
}

static void
lzfu_read(struct lzfu *z, const unsigned char *p, const unsigned char *end,
    size_t max)
{
	unsigned control, bit;

	while (p < end && z->out->len < max) {
		control = *p++;
		for (bit = 0; bit < 8; bit++, control >>= 1) {
			if (p == end)
				return;
			if ((control & 1) == 0) {
				lzfu_put(z, (char)*p++);
				continue;
			}
			if (end - p < 2 || !lzfu_copy(z,
			    (unsigned)p[0] << 8 | p[1]))
				return;
			p += 2;
		}
	}
}

bool
rtf_decompress(struct buf *out, const unsigned char *data, size_t len,
    size_t max)
{
	struct lzfu z = { .at = sizeof(preset) - 1, .out = out };

	if (len < 16)
		return false;
	if (rtf_le32(data + 8) == UNCOMPRESSED) {
		buf_add(out, data + 16, len - 16 < max ? len - 16 : max);
		return true;
	}
	if (rtf_le32(data + 8) != COMPRESSED)
		return false;
	memcpy(z.dictionary, preset, sizeof(preset) - 1);
	lzfu_read(&z, data + 16, data + len, max);
	return true;
}

/* --- text ---------------------------------------------------------------- */

struct rtf {
	struct arena *arena;
	const char *p, *end;
	struct buf *out;
	struct buf bytes;   /* of the code page, not yet converted */
	struct buf groups;  /* a byte each: whether they are skipped */
	enum charset charset;
	bool is_skipped;    /* the group */
	bool is_rtf_only;   /* \htmlrtf: not of the HTML it was made from */
	unsigned skip_next; /* bytes that stand for a \u character */
	unsigned per_code;  /* \uc */
};

/* Groups that hold no text, besides those that begin with \*. */
static const char *const destinations[] = { "fonttbl", "colortbl",
	"stylesheet", "info", "pict", "header", "footer", "headerl", "headerr",
	"footerl", "footerr", "object", "listtable", "listoverridetable" };

static const struct {
	const char *word, *text;
} texts[] = { { "par", "\n" }, { "line", "\n" }, { "row", "\n" },
	{ "page", "\n" }, { "sect", "\n" }, { "tab", "\t" }, { "cell", " " },
	{ "emdash", "\xE2\x80\x94" }, { "endash", "\xE2\x80\x93" },
	{ "lquote", "\xE2\x80\x98" }, { "rquote", "\xE2\x80\x99" },
	{ "ldblquote", "\xE2\x80\x9C" }, { "rdblquote", "\xE2\x80\x9D" },
	{ "bullet", "\xE2\x80\xA2" } };

static void
rtf_flush(struct rtf *s)
{
	const char *text;
	size_t len;

	if (s->bytes.len == 0)
		return;
	text = charset_convert(s->arena, s->charset, s->bytes.data,
	    s->bytes.len, &len);
	buf_add(s->out, text, len);
	buf_reset(&s->bytes);
}

static bool
rtf_is_shown(struct rtf *s)
{
	return !s->is_skipped && !s->is_rtf_only;
}

static void
rtf_put_text(struct rtf *s, const char *text, size_t len)
{
	if (!rtf_is_shown(s))
		return;
	rtf_flush(s);
	buf_add(s->out, text, len);
}

static void
rtf_put_byte(struct rtf *s, char c)
{
	if (s->skip_next > 0)
		s->skip_next--;
	else if (rtf_is_shown(s) && c != '\0')
		buf_addc(&s->bytes, c);
}

static void
rtf_put_code(struct rtf *s, long code)
{
	char utf8[4];

	if (code < 0)
		code += 65536;
	s->skip_next = s->per_code;
	if (code >= 0x20 && code <= 0x10FFFF &&
	    !(code >= 0xD800 && code < 0xE000))
		rtf_put_text(s, utf8, text_encode(utf8, (uint32_t)code));
}

static void
rtf_set_codepage(struct rtf *s, long number)
{
	const char *label = arena_printf(s->arena, "windows-%ld", number);
	enum charset charset = charset_find(label, strlen(label));

	if (charset != CHARSET_GUESSED)
		s->charset = charset;
}

static void
rtf_obey(struct rtf *s, const char *word, bool has_number, long number)
{
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(texts[i].word, word) == 0) {
			rtf_put_text(s, texts[i].text, strlen(texts[i].text));
			return;
		}
	for (i = 0; i < sizeof(destinations) / sizeof(destinations[0]); i++)
		if (strcmp(destinations[i], word) == 0)
			s->is_skipped = true;
	if (strcmp(word, "u") == 0 && has_number)
		rtf_put_code(s, number);
	else if (strcmp(word, "uc") == 0 && has_number)
		s->per_code = number < 0 || number > 8 ? 1 : (unsigned)number;
	else if (strcmp(word, "ansicpg") == 0)
		rtf_set_codepage(s, number);
	else if (strcmp(word, "htmlrtf") == 0)
		s->is_rtf_only = !has_number || number != 0;
}

/* Nine digits at most. */
static long
rtf_number(const char *p, const char *end)
{
	bool is_negative = p < end && *p == '-';
	long number = 0;

	for (p += is_negative; p < end; p++)
		number = number * 10 + (*p - '0');
	return is_negative ? -number : number;
}

/* \word, \word-12, with one blank that belongs to it. */
static void
rtf_read_word(struct rtf *s)
{
	const char *number;
	bool has_number;
	char word[24];
	size_t n = 0;

	for (; s->p < s->end && isalpha((unsigned char)*s->p); s->p++)
		if (n < sizeof(word) - 1)
			word[n++] = *s->p;
	word[n] = '\0';
	number = s->p;
	if (s->p < s->end && *s->p == '-')
		s->p++;
	while (s->p < s->end && isdigit((unsigned char)*s->p) &&
	    s->p - number < 9)
		s->p++;
	has_number = s->p > number;
	rtf_obey(s, word, has_number, rtf_number(number, s->p));
	if (s->p < s->end && *s->p == ' ')
		s->p++;
}

/* Behind a backslash. */
static void
rtf_read_control(struct rtf *s)
{
	char c;

	if (s->p == s->end)
		return;
	if (isalpha((unsigned char)*s->p)) {
		rtf_read_word(s);
		return;
	}
	c = *s->p++;
	if (c == '\'' && s->end - s->p >= 2 && hex_pair(s->p) >= 0) {
		rtf_put_byte(s, (char)hex_pair(s->p));
		s->p += 2;
	} else if (c == '*') {
		s->is_skipped = true;
	} else if (c == '\n' || c == '\r') {
		rtf_put_text(s, "\n", 1);
	} else if (c == '~') {
		rtf_put_text(s, " ", 1);
	} else if (c == '\\' || c == '{' || c == '}') {
		rtf_put_byte(s, c);
	}
}

static void
rtf_read_group(struct rtf *s, char c)
{
	if (c == '{') {
		buf_addc(&s->groups, s->is_skipped);
	} else if (s->groups.len > 0) {
		s->is_skipped = s->groups.data[--s->groups.len] != 0;
	}
}

void
rtf_to_text(struct arena *arena, struct buf *out, const char *rtf, size_t len,
    size_t max)
{
	struct rtf s = { .arena = arena, .p = rtf, .end = rtf + len,
		.out = out, .per_code = 1,
		.charset = charset_find("windows-1252", 12) };
	char c;

	while (s.p < s.end && out->len + s.bytes.len < max) {
		c = *s.p++;
		if (c == '\\')
			rtf_read_control(&s);
		else if (c == '{' || c == '}')
			rtf_read_group(&s, c);
		else if (c != '\r' && c != '\n')
			rtf_put_byte(&s, c);
	}
	rtf_flush(&s);
	buf_release(&s.bytes);
	buf_release(&s.groups);
}
