/*
 * alternative.c - do two forms of a text say the same?
 *
 * Runs in: children that parse.  Never blocks.
 *
 * Many senders put one sentence into the plain part, "Your program does not
 * show HTML", in any language, and the letter into the other.  No list of such
 * sentences is kept: a plain part that lacks the words of the HTML is not its
 * text.  Then the HTML is worth showing, the form that the sender prefers (RFC
 * 2046 5.1.4), unless it has hardly any words beside the plain part: a picture
 * and its caption.
 */
#include "config.h"

#include "mime/alternative.h"

#include <ctype.h>
#include <string.h>

#define WORDS_MAX 24
#define MARKUP_BYTES 6000 /* of HTML that says no more than the plain part, */
#define MARKUP_FACTOR 12  /* beside this many times its bytes */
#define SHORT 300	 /* bytes of a plain part that may be a stub */
#define LETTER_MIN 20	 /* bytes; less is no letter, nor is */
#define PICTURE_FACTOR 4 /* what is that much shorter than the other */
#define WORD_MIN 4   /* bytes; shorter ones are in any text */
#define FOREIGN_MAX 12 /* bytes of a word that is not ASCII: four of CJK */

/* The next word behind p; NULL: none is left. */
static const char *
next_word(const char *p, const char *end, size_t *len_r)
{
	const char *q;
	bool is_ascii;

	for (; p < end; p = q) {
		while (p < end && !isalnum((unsigned char)*p) &&
		    (unsigned char)*p < 0x80)
			p++;
		is_ascii = p < end && (unsigned char)*p < 0x80;
		for (q = p; q < end && (is_ascii ? isalnum((unsigned char)*q)
			: (unsigned char)*q >= 0x80); q++)
			if (!is_ascii && q - p >= FOREIGN_MAX &&
			    ((unsigned char)*q & 0xC0) != 0x80)
				break;
		*len_r = (size_t)(q - p);
		if (*len_r >= WORD_MIN)
			return p;
	}
	return NULL;
}

static bool
speaks_of_html(const char *text, size_t len)
{
	const char *p = text, *end = text + len;

	for (; end - p >= 4 && (p = memchr(p, 't', (size_t)(end - p))) != NULL;
	    p++)
		if (p > text && end - p >= 3 &&
		    strncasecmp(p - 1, "html", 4) == 0)
			return true;
	for (p = text; (p = memchr(p, 'M', (size_t)(end - p))) != NULL; p++)
		if (p - text >= 2 && end - p >= 2 &&
		    memcmp(p - 2, "HTML", 4) == 0)
			return true;
	return false;
}

/* Whether more than `max` bytes stand between the tags, styles included. */
static bool
has_more_text(const char *p, const char *end, size_t max)
{
	const char *tag;
	size_t n = 0;

	while (p != NULL && p < end && n <= max) {
		tag = memchr(p, '<', (size_t)(end - p));
		n += (size_t)((tag == NULL ? end : tag) - p);
		p = tag == NULL ? NULL
		    : memchr(tag, '>', (size_t)(end - tag));
		p = p == NULL ? NULL : p + 1;
	}
	return n > max;
}

/*
 * Most messages need no more: three words from the first half of the plain part
 * stand in the HTML, in this order.
 */
bool
alternative_is_alike(const char *raw, size_t raw_len, const char *text,
    size_t len)
{
	const char *p = text, *end = text + len, *raw_end = raw + raw_len;
	size_t i, word;

	if (raw_len > MARKUP_BYTES + MARKUP_FACTOR * len ||
	    speaks_of_html(text, len) ||
	    (len < SHORT && has_more_text(raw, raw_end, 2 * len)))
		return false;
	for (i = 1; i <= 3; i++) {
		if ((p = next_word(p, end, &word)) == NULL ||
		    (raw = memmem(raw, (size_t)(raw_end - raw), p, word)) ==
		    NULL)
			return false;
		p += word;
		/* Not from the middle of a word. */
		if (p < text + i * len / 6)
			p = text + i * len / 6;
		while (p < end && *p != ' ' && *p != '\n')
			p++;
	}
	return true;
}

bool
alternative_is_same(const char *sample, size_t sample_len, const char *text,
    size_t len)
{
	const char *end = sample + sample_len, *p = sample;
	size_t n = 0, found = 0, word;

	for (; n < WORDS_MAX && (p = next_word(p, end, &word)) != NULL;
	    p += word) {
		n++;
		found += memmem(text, len, p, word) != NULL;
	}
	/* "View in a browser" may stand in both: then much is missing. */
	if (sample_len > 2 * len && found * 5 < n * 4)
		return false;
	/* Hardly any words: a picture with a caption. */
	return n == 0 || found * 2 >= n;
}

bool
alternative_is_better(const char *other, size_t other_len, const char *text,
    size_t len)
{
	if (speaks_of_html(text, len) && !speaks_of_html(other, other_len))
		return other_len > 0;
	return other_len >= LETTER_MIN && PICTURE_FACTOR * other_len > len;
}
