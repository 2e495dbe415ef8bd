/*
 * detect.c - which charset unlabelled bytes are written in.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * Each candidate is a charset and what is written in it.  A text costs so many
 * bits there: few for what is frequent in the language, more for what is rare,
 * very many for what is no text.  The cheapest wins.  The detectors of Mozilla
 * and ICU want more text than a subject or the name of a file has: of 147 such
 * in 15 charsets (tests/mime-cases/detect.tsv has those known here) they know
 * 80 and 38.
 */
#include "mime/detect.h"

#include <string.h>
#include <uchar.h>

#include "mime/charset_frequent.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* More of a text does not change the answer. */
#define SAMPLE_MAX ((size_t)2048)

#define COST_ASCII 4
#define COST_BAD 40

/* Where two bytes make a character. */
static const struct script {
	enum charset charset;
	const char16_t *frequent;
	size_t n_frequent;
	unsigned char first, last, trail; /* bytes of ordinary ones, */
	unsigned char ordinary;		  /* what one of them costs */
	bool has_kana;
} scripts[] = {
#define FREQUENT(table) table, sizeof(table) / sizeof(table[0]) - 1
	{ CHARSET_GB18030, FREQUENT(frequent_hans), 0xB0, 0xD7, 0xA1, 13,
	    false },
	{ CHARSET_BIG5, FREQUENT(frequent_hant), 0xA4, 0xC6, 0x40, 14, false },
	{ CHARSET_SHIFTJIS, FREQUENT(frequent_kanji), 0x88, 0x98, 0x40, 13,
	    true },
	{ CHARSET_EUCJP, FREQUENT(frequent_kanji), 0xB0, 0xCF, 0xA1, 13, true },
	{ CHARSET_EUCKR, FREQUENT(frequent_hangul), 0xB0, 0xC8, 0xA1, 12,
	    false },
};

/*
 * Where one byte is a character: the letters of a language beyond ASCII, the
 * most frequent first.  Of equals the first row wins.
 */
static const struct alphabet {
	enum charset charset;
	bool is_latin; /* stand among ASCII letters, not apart from them */
	const char16_t *small, *capital;
} alphabets[] = {
	{ CHARSET_WINDOWS1252, true, u"üäöß", u"ÜÄÖ" },
	{ CHARSET_WINDOWS1252, true, u"éèàêçâîôùûëïœ", u"ÉÈÀÊÇÂÎÔÙÛŒ" },
	{ CHARSET_WINDOWS1252, true, u"óíáéñúü¿¡ºª", u"ÓÍÁÉÑÚÜ" },
	{ CHARSET_WINDOWS1252, true, u"ãçáéíóêâõúàôüºª", u"ÃÇÁÉÍÓÊÂÕÚÀÔ" },
	{ CHARSET_WINDOWS1252, true, u"àèùìòé°", u"ÀÈÙÌÒÉ" },
	{ CHARSET_WINDOWS1252, true, u"äåöéøæ", u"ÄÅÖÉØÆ" },
	{ CHARSET_WINDOWS1252, true, u"ëéïèöüó", u"ËÉÏ" },
	{ CHARSET_WINDOWS1252, true, u"íáðóéæöúþý", u"ÍÁÐÓÉÆÖÚÞÝ" },
	{ CHARSET_WINDOWS1250, true, u"łąęóżśćńź", u"ŁĄĘÓŻŚĆŃŹ" },
	{ CHARSET_WINDOWS1250, true, u"íáéěýřščžůúťďňó", u"ÍÁÉĚÝŘŠČŽŮÚŤĎŇ" },
	{ CHARSET_WINDOWS1250, true, u"áíéčýžľšúťäôňóďĺŕ", u"ÁÍÉČÝŽĽŠÚŤÔŇÓĎ" },
	{ CHARSET_WINDOWS1250, true, u"áéőóöíüűú", u"ÁÉŐÓÖÍÜŰÚ" },
	{ CHARSET_WINDOWS1250, true, u"šžčćđ", u"ŠŽČĆĐ" },
	{ CHARSET_WINDOWS1250, true, u"ăţşîâ", u"ĂŢŞÎÂ" },
	{ CHARSET_WINDOWS1254, true, u"ıüşğçöâî", u"İÜŞĞÇÖ" },
	{ CHARSET_WINDOWS1257, true, u"ėųįšžąęūč", u"ĖŲĮŠŽĄĘŪČ" },
	{ CHARSET_WINDOWS1257, true, u"āīēšūņļžčģķ", u"ĀĪĒŠŪŅĻŽČĢĶ" },
	{ CHARSET_ISO88592, true, u"łąęóżśćńźěřščžůťďňőű",
	    u"ŁĄĘÓŻŚĆŃŹĚŘŠČŽŮŤĎŇŐŰ" },
	{ CHARSET_WINDOWS1251, false, u"оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",
	    u"ОЕАИНТСРВЛКМДПУЯЫЬГЗБЧЙХЖШЮЦЩЭФЪЁ" },
	{ CHARSET_WINDOWS1251, false, u"оаинівтерскдлпумзяьгбчйхцєїжшющфґ",
	    u"ОАИНІВТЕРСКДЛПУМЗЯЬГБЧЙХЦЄЇЖШЮЩФҐ" },
	{ CHARSET_KOI8R, false, u"оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",
	    u"ОЕАИНТСРВЛКМДПУЯЫЬГЗБЧЙХЖШЮЦЩЭФЪЁ" },
	{ CHARSET_KOI8U, false, u"оаинівтерскдлпумзяьгбчйхцєїжшющфґ",
	    u"ОАИНІВТЕРСКДЛПУМЗЯЬГБЧЙХЦЄЇЖШЮЩФҐ" },
	{ CHARSET_IBM866, false, u"оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",
	    u"ОЕАИНТСРВЛКМДПУЯЫЬГЗБЧЙХЖШЮЦЩЭФЪЁ" },
	{ CHARSET_ISO88595, false, u"оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",
	    u"ОЕАИНТСРВЛКМДПУЯЫЬГЗБЧЙХЖШЮЦЩЭФЪЁ" },
	{ CHARSET_WINDOWS1253, false, u"αοιετσνηυρπκμλςωγδόίάέήχθφύβώξζψ",
	    u"ΑΟΙΕΤΣΝΗΥΡΠΚΜΛΩΓΔΌΊΆΈΉΧΘΦΎΒΏΞΖΨ" },
	{ CHARSET_ISO88597, false, u"αοιετσνηυρπκμλςωγδόίάέήχθφύβώξζψ",
	    u"ΑΟΙΕΤΣΝΗΥΡΠΚΜΛΩΓΔΌΊΆΈΉΧΘΦΎΒΏΞΖΨ" },
	{ CHARSET_WINDOWS1255, false, u"יוהלארתמבשנעםדחקפכןטסגזצךףץ", u"" },
	{ CHARSET_WINDOWS1256, false, u"المينوترهبدعسفكحقةجشصطأخضذغىئثزإءآؤظ",
	    u"" },
	{ CHARSET_WINDOWS874, false, u"านรอกเง่ยมัีลวดท้สติคะบหปแจพ"
	    "ชใข็ุืไูึ์ำโผธณซญฟถภศษ", u"" },
	/* What no language has together. */
	{ CHARSET_WINDOWS1252, true, u"", u"" },
};

static size_t
detect_index(const char16_t *letters, uint32_t code)
{
	size_t i;

	for (i = 0; letters[i] != 0; i++)
		if (letters[i] == code)
			return i;
	return SIZE_MAX;
}

static bool
is_frequent(const struct script *s, uint32_t code)
{
	size_t low = 0, high = s->n_frequent, middle;

	while (high - low > 1) {
		middle = (low + high) / 2;
		if (s->frequent[middle] <= code)
			low = middle;
		else
			high = middle;
	}
	return s->frequent[low] == code;
}

static unsigned
detect_wide(const struct script *s, uint32_t code, const unsigned char *at,
    size_t n)
{
	if (code < 0x80)
		return COST_ASCII;
	if (code == CODEC_BAD)
		return COST_BAD;
	if (is_frequent(s, code))
		return 9;
	if (s->has_kana && code >= 0x3041 && code <= 0x30FE)
		return 7;
	if (code >= 0xFF61 && code <= 0xFF9F)
		return s->has_kana ? 10 : 22; /* of half the width */
	if ((code >= 0x3001 && code <= 0x301B) ||
	    (code >= 0xFF01 && code <= 0xFF5E))
		return 11; /* punctuation, wide letters */
	if (code >= 0xE000 && code <= 0xF8FF)
		return COST_BAD / 2;
	return n == 2 && at[0] >= s->first && at[0] <= s->last &&
	    at[1] >= s->trail ? s->ordinary : 18;
}

/*
 * What it costs that it is this charset at all, for those who seldom send
 * mail without a label: decides where a text is a letter or two.
 */
static unsigned
detect_prior(enum charset charset)
{
	switch (charset) {
	case CHARSET_WINDOWS1252:
		return 0;
	case CHARSET_WINDOWS1250:
	case CHARSET_WINDOWS1254:
		return 2;
	case CHARSET_IBM866:
	case CHARSET_ISO88592:
	case CHARSET_ISO88595:
	case CHARSET_ISO88597:
		return 8;
	case CHARSET_EUCKR:
	case CHARSET_EUCJP:
	case CHARSET_BIG5:
		return 6;
	default:
		return 4;
	}
}

static unsigned
detect_script(const struct script *s, const char *bytes, size_t len,
    unsigned limit)
{
	unsigned cost = detect_prior(s->charset);
	const unsigned char *at;
	struct codec c;
	uint32_t code;

	codec_init(&c, s->charset, bytes, len);
	while (codec_has_more(&c) && cost < limit) {
		at = c.p;
		code = codec_next(&c);
		cost += detect_wide(s, code, at, (size_t)(c.p - at));
	}
	return cost;
}

/* Made by detect_init(): what a byte costs in an alphabet, and is there. */
static struct byte_cost {
	unsigned char cost, letter;
} byte_costs[LENGTH(alphabets)][256];

enum letter { NO_LETTER, ASCII_LETTER, SMALL_LETTER, CAPITAL_LETTER };

/* What stands in texts of any language. */
static bool
is_typographic(uint32_t code)
{
	return detect_index(u"\u00a0«»“”„‘’‚–—…€№°§·®©™", code) != SIZE_MAX;
}

static unsigned
detect_narrow(const struct alphabet *a, uint32_t code, enum letter *letter)
{
	size_t i;

	*letter = NO_LETTER;
	if (code < 0x80) {
		if ((code | 0x20) >= 'a' && (code | 0x20) <= 'z')
			*letter = ASCII_LETTER;
		return COST_ASCII;
	}
	if (code == CODEC_BAD)
		return COST_BAD;
	if ((i = detect_index(a->small, code)) != SIZE_MAX)
		*letter = SMALL_LETTER;
	else if ((i = detect_index(a->capital, code)) != SIZE_MAX)
		*letter = CAPITAL_LETTER;
	if (i != SIZE_MAX)
		return a->is_latin ? 5 + (unsigned)i / 2 : 4 + (unsigned)i / 5;
	if (is_typographic(code))
		return 8;
	if (a->small[0] == 0 && code >= 0xC0 && code != 0xD7 && code != 0xF7)
		return 11; /* some letter of Latin 1 */
	return 14;
}

/* How unlikely one letter is behind another. */
static unsigned
detect_neighbours(const struct alphabet *a, enum letter before,
    enum letter letter)
{
	if (letter == CAPITAL_LETTER && before != CAPITAL_LETTER)
		return before == SMALL_LETTER ? 9 : 1;
	if (before == NO_LETTER || letter == NO_LETTER)
		return 0;
	if (a->is_latin) /* beyond ASCII they stand alone */
		return before >= SMALL_LETTER && letter >= SMALL_LETTER ? 3 : 0;
	return (before == ASCII_LETTER) != (letter == ASCII_LETTER) ? 8 : 0;
}

void
detect_init(void)
{
	const struct alphabet *a;
	struct byte_cost *b;
	enum letter letter;
	unsigned byte;
	size_t i;

	for (i = 0; i < LENGTH(alphabets); i++) {
		a = &alphabets[i];
		for (byte = 0; byte < 256; byte++) {
			b = &byte_costs[i][byte];
			b->cost = (unsigned char)detect_narrow(a,
			    codec_byte(a->charset, byte), &letter);
			b->letter = (unsigned char)letter;
		}
	}
}

static unsigned
detect_alphabet(size_t i, const char *bytes, size_t len, unsigned limit)
{
	const struct alphabet *a = &alphabets[i];
	const struct byte_cost *costs = byte_costs[i], *b;
	enum letter before = NO_LETTER;
	unsigned cost = detect_prior(a->charset);
	size_t k;

	for (k = 0; k < len && cost < limit; k++) {
		b = &costs[(unsigned char)bytes[k]];
		cost += b->cost;
		cost += detect_neighbours(a, before, (enum letter)b->letter);
		before = (enum letter)b->letter;
	}
	return cost;
}

/* Where the first byte beyond ASCII is, or a little before it. */
static void
detect_sample(const char **bytes, size_t *len)
{
	size_t i;

	for (i = 0; i < *len && (unsigned char)(*bytes)[i] < 0x80; i++)
		;
	if (i == *len)
		return;
	i -= i > 64 ? 64 : i;
	*bytes += i;
	*len -= i;
	if (*len > SAMPLE_MAX)
		*len = SAMPLE_MAX;
}

enum charset
detect_charset(const char *bytes, size_t len)
{
	enum charset best = detect_escapes(bytes, len);
	unsigned cost, least = UINT32_MAX;
	size_t i;

	if (best != CHARSET_GUESSED)
		return best;
	detect_sample(&bytes, &len);
	best = CHARSET_WINDOWS1252;
	for (i = 0; i < LENGTH(alphabets); i++) {
		cost = detect_alphabet(i, bytes, len, least);
		if (cost < least) {
			least = cost;
			best = alphabets[i].charset;
		}
	}
	for (i = 0; i < LENGTH(scripts); i++) {
		cost = detect_script(&scripts[i], bytes, len, least);
		if (cost < least) {
			least = cost;
			best = scripts[i].charset;
		}
	}
	return best;
}

enum charset
detect_escapes(const char *bytes, size_t len)
{
	static const struct {
		const char *text;
		enum charset charset;
	} escapes[] = { { "$)C", CHARSET_ISO2022KR },
		{ "$)A", CHARSET_ISO2022CN }, { "$)G", CHARSET_ISO2022CN },
		{ "$B", CHARSET_ISO2022JP }, { "$@", CHARSET_ISO2022JP },
		{ "$(D", CHARSET_ISO2022JP }, { "$A", CHARSET_ISO2022JP },
		{ "$(C", CHARSET_ISO2022JP }, { "(I", CHARSET_ISO2022JP },
		{ "(J", CHARSET_ISO2022JP } };
	const char *p = bytes, *end = bytes + len;
	size_t i, n;

	while ((p = memchr(p, '\x1b', (size_t)(end - p))) != NULL) {
		p++;
		for (i = 0; i < LENGTH(escapes); i++) {
			n = strlen(escapes[i].text);
			if ((size_t)(end - p) >= n &&
			    memcmp(p, escapes[i].text, n) == 0)
				return escapes[i].charset;
		}
	}
	return CHARSET_GUESSED;
}
