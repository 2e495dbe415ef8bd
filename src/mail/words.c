/*
 * words.c - text to words, the same way for the index and for queries.
 *
 * Runs in: children that store messages, mailherdctl.  Never blocks.
 *
 * Every character is one of: a letter or digit (folded to lower case without
 * accents), one of a script without blanks (becomes pairs), invisible (as if
 * it were not there: soft hyphen, zero width, accents of their own), or
 * anything else, which ends a word.
 */
#include "mail/words.h"

#include "base/text.h"
#include "mail/fold_table.h"

enum sort { SORT_END, SORT_WORD, SORT_PAIR, SORT_IGNORE };

struct letter {
	enum sort sort;
	unsigned consumed; /* bytes of the text */
	unsigned len;	   /* bytes in `folded` */
	char folded[4];
};

/* Lower case of ASCII letters and digits; 0 for what ends a word. */
static const unsigned char ascii_fold[128] = {
	['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3', ['4'] = '4',
	['5'] = '5', ['6'] = '6', ['7'] = '7', ['8'] = '8', ['9'] = '9',
#define L(upper, lower) [upper] = lower, [lower] = lower
	L('A', 'a'), L('B', 'b'), L('C', 'c'), L('D', 'd'), L('E', 'e'),
	L('F', 'f'), L('G', 'g'), L('H', 'h'), L('I', 'i'), L('J', 'j'),
	L('K', 'k'), L('L', 'l'), L('M', 'm'), L('N', 'n'), L('O', 'o'),
	L('P', 'p'), L('Q', 'q'), L('R', 'r'), L('S', 's'), L('T', 't'),
	L('U', 'u'), L('V', 'v'), L('W', 'w'), L('X', 'x'), L('Y', 'y'),
	L('Z', 'z'),
#undef L
};

static const struct range {
	uint32_t first, last;
	enum sort sort;
} ranges[] = {
	{ 0x0080, 0x00A9, SORT_END },
	{ 0x00AD, 0x00AD, SORT_IGNORE },
	{ 0x00AB, 0x00B4, SORT_END },
	{ 0x00B6, 0x00B9, SORT_END },
	{ 0x00BB, 0x00BF, SORT_END },
	{ 0x02B0, 0x02FF, SORT_END },
	{ 0x0300, 0x036F, SORT_IGNORE },
	{ 0x055A, 0x055F, SORT_END },
	{ 0x0589, 0x058F, SORT_END },
	{ 0x05BE, 0x05BE, SORT_END },
	{ 0x0591, 0x05C7, SORT_IGNORE },
	{ 0x05F3, 0x05F4, SORT_END },
	{ 0x0600, 0x060F, SORT_END },
	{ 0x061B, 0x061F, SORT_END },
	{ 0x0640, 0x0640, SORT_IGNORE },
	{ 0x064B, 0x065F, SORT_IGNORE },
	{ 0x066A, 0x066D, SORT_END },
	{ 0x06D4, 0x06D4, SORT_END },
	{ 0x0964, 0x0965, SORT_END },
	{ 0x0E00, 0x0EFF, SORT_PAIR },	 /* Thai, Lao */
	{ 0x1000, 0x109F, SORT_PAIR },	 /* Burmese */
	{ 0x1100, 0x11FF, SORT_PAIR },	 /* Hangul */
	{ 0x1780, 0x17FF, SORT_PAIR },	 /* Khmer */
	{ 0x200B, 0x200F, SORT_IGNORE },
	{ 0x202A, 0x202E, SORT_IGNORE },
	{ 0x2060, 0x2064, SORT_IGNORE },
	{ 0x2000, 0x206F, SORT_END },
	{ 0x20A0, 0x20CF, SORT_END },
	{ 0x20D0, 0x20FF, SORT_IGNORE },
	{ 0x2190, 0x2BFF, SORT_END },
	{ 0x2E00, 0x2E7F, SORT_END },
	{ 0x3000, 0x3004, SORT_END },
	{ 0x3008, 0x3020, SORT_END },
	{ 0x3030, 0x3030, SORT_END },
	{ 0x303D, 0x303F, SORT_END },
	{ 0x30FB, 0x30FB, SORT_END },
	{ 0x2E80, 0x9FFF, SORT_PAIR },	 /* kana, Chinese characters */
	{ 0xA960, 0xA97F, SORT_PAIR },
	{ 0xAC00, 0xD7FF, SORT_PAIR },	 /* Hangul syllables */
	{ 0xE000, 0xF8FF, SORT_END },	 /* private use */
	{ 0xF900, 0xFAFF, SORT_PAIR },
	{ 0xFE00, 0xFE0F, SORT_IGNORE },
	{ 0xFE10, 0xFE6F, SORT_END },
	{ 0xFEFF, 0xFEFF, SORT_IGNORE },
	{ 0xFF5F, 0xFF65, SORT_END },
	{ 0xFF66, 0xFFDC, SORT_PAIR },
	{ 0xFFE0, 0xFFFF, SORT_END },
	{ 0x1F000, 0x1FAFF, SORT_END },	 /* emoji */
	{ 0x20000, 0x3FFFF, SORT_PAIR },
	{ 0xE0000, 0x10FFFF, SORT_IGNORE },
};

static enum sort
sort_of(uint32_t c)
{
	size_t i;

	for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return ranges[i].sort;
	return SORT_WORD;
}

static const unsigned short *
fold_cell(uint32_t c)
{
	if (c >= 0x00C0 && c <= 0x024F)
		return &fold_00c0[c - 0x00C0];
	if (c >= 0x0370 && c <= 0x052F)
		return &fold_0370[c - 0x0370];
	if (c >= 0x1E00 && c <= 0x1FFF)
		return &fold_1e00[c - 0x1E00];
	return NULL;
}

static void
words_set_text(struct letter *l, const char *s)
{
	l->sort = SORT_WORD;
	l->len = (unsigned)strlen(s);
	memcpy(l->folded, s, l->len);
}

static void
words_classify(struct letter *l, uint32_t c)
{
	static const char ligatures[][4] = { "ff", "fi", "fl", "ffi", "ffl",
		"st", "st" };
	const unsigned short *cell = fold_cell(c);

	if (cell != NULL) {
		if (*cell >= 0xFF00) {
			words_set_text(l, fold_expansions[*cell - 0xFF00]);
		} else {
			l->sort = *cell == 0 ? SORT_END : SORT_WORD;
			l->len = text_encode(l->folded, *cell);
		}
		return;
	}
	if (c >= 0xFB00 && c <= 0xFB06) {
		words_set_text(l, ligatures[c - 0xFB00]);
		return;
	}
	if (c >= 0xFF01 && c <= 0xFF5E) { /* full-width ASCII */
		l->folded[0] = (char)ascii_fold[c - 0xFF01 + 0x21];
		l->len = 1;
		l->sort = l->folded[0] == 0 ? SORT_END : SORT_WORD;
		return;
	}
	if (c >= 0x0531 && c <= 0x0556) /* Armenian capitals */
		c += 0x30;
	l->sort = sort_of(c);
	l->len = text_encode(l->folded, c);
}

static void
next_letter(const unsigned char *p, const unsigned char *end, struct letter *l)
{
	unsigned n = text_utf8_char(p, (size_t)(end - p));

	if (n <= 1) {
		l->consumed = 1;
		l->folded[0] = n == 0 ? 0 : (char)ascii_fold[*p];
		l->len = 1;
		l->sort = l->folded[0] == 0 ? SORT_END : SORT_WORD;
		return;
	}
	l->consumed = n;
	words_classify(l, text_code(p, n));
}

/* Characters that hold a run together when a word follows. */
static bool
is_connector(unsigned char c)
{
	return c == '.' || c == '@' || c == '-' || c == '_' || c == '+';
}

/* One word to the end of run->bytes; its length there. */
static size_t
scan_word(struct word_scan *scan, struct run *run, size_t offset)
{
	const unsigned char *p = scan->p;
	size_t len = 0;
	struct letter l;

	for (;;) {
		while (p < scan->end && *p < 0x80 && ascii_fold[*p] != 0) {
			if (len < WORD_MAX)
				run->bytes[offset + len++] =
				    (char)ascii_fold[*p];
			p++;
		}
		if (p == scan->end || *p < 0x80)
			break;
		next_letter(p, scan->end, &l);
		if (l.sort != SORT_WORD && l.sort != SORT_IGNORE)
			break;
		if (l.sort == SORT_WORD && len + l.len <= WORD_MAX) {
			memcpy(run->bytes + offset + len, l.folded, l.len);
			len += l.len;
		}
		p += l.consumed;
	}
	scan->p = p;
	return len;
}

static void
find_wholes(struct run *run, size_t len, bool has_dot, size_t host)
{
	size_t i;

	if (run->n_parts < 2)
		return;
	if ((has_dot || host > 0) && len <= COMPOUND_MAX)
		run->whole = (struct word){ 0, (uint16_t)len };
	if (host == 0 || len - host > COMPOUND_MAX ||
	    memchr(run->bytes + host, '.', len - host) == NULL)
		return;
	run->host = (struct word){ (uint16_t)host, (uint16_t)(len - host) };
	for (i = 0; i < run->n_parts; i++)
		if (run->parts[i].offset == host)
			run->host_part = i;
}

static bool
starts_word(const unsigned char *p, const unsigned char *end)
{
	struct letter l;

	if (p >= end)
		return false;
	next_letter(p, end, &l);
	return l.sort == SORT_WORD;
}

static void
scan_run(struct word_scan *scan, struct run *run)
{
	size_t offset = 0, len, host = 0;
	bool has_dot = false;
	unsigned char connector;

	for (;;) {
		len = scan_word(scan, run, offset);
		run->parts[run->n_parts++] =
		    (struct word){ (uint16_t)offset, (uint16_t)len };
		offset += len;
		if (run->n_parts == COMPOUND_PARTS ||
		    offset + WORD_MAX + 1 > sizeof(run->bytes) ||
		    scan->p == scan->end || !is_connector(*scan->p) ||
		    !starts_word(scan->p + 1, scan->end))
			break;
		connector = *scan->p++;
		run->bytes[offset++] = (char)connector;
		if (connector == '@')
			host = offset;
		else if (connector == '.')
			has_dot = true;
	}
	find_wholes(run, offset, has_dot, host);
}

/*
 * Pairs overlap, so the bytes of each character are kept once and a pair is
 * two neighbours.  A run that does not fit goes on with its last character.
 */
static void
scan_pairs(struct word_scan *scan, struct run *run)
{
	const unsigned char *p = scan->p, *last = p;
	struct word chars[COMPOUND_PARTS];
	size_t n = 0, offset = 0, i;
	struct letter l;

	while (p < scan->end && n < COMPOUND_PARTS) {
		next_letter(p, scan->end, &l);
		if (l.sort == SORT_PAIR) {
			memcpy(run->bytes + offset, l.folded, l.len);
			chars[n++] = (struct word){ (uint16_t)offset,
				(uint16_t)l.len };
			offset += l.len;
			last = p;
		} else if (l.sort != SORT_IGNORE) {
			break;
		}
		p += l.consumed;
	}
	for (i = 0; i + 1 < n; i++)
		run->parts[run->n_parts++] = (struct word){ chars[i].offset,
			(uint16_t)(chars[i].len + chars[i + 1].len) };
	if (n == COMPOUND_PARTS)
		p = last;
	else
		run->parts[run->n_parts++] = chars[n - 1];
	run->is_pairs = true;
	run->has_tail = n < COMPOUND_PARTS;
	scan->p = p;
}

bool
words_next(struct word_scan *scan, struct run *run)
{
	struct letter l;

	run->n_parts = 0;
	run->whole.len = run->host.len = 0;
	run->host_part = 0;
	run->is_pairs = run->has_tail = false;
	while (scan->p < scan->end) {
		if (*scan->p < 0x80 && ascii_fold[*scan->p] == 0) {
			scan->p++;
			continue;
		}
		next_letter(scan->p, scan->end, &l);
		if (l.sort == SORT_WORD)
			scan_run(scan, run);
		else if (l.sort == SORT_PAIR)
			scan_pairs(scan, run);
		else
			scan->p += l.consumed;
		if (run->n_parts > 0)
			return true;
	}
	return false;
}
