/*
 * keywords.c - keywords that are no atoms, on their way through the parser.
 *
 * Runs in: hot, pool and job children.  Never blocks.
 */
#include "imap/keywords.h"

#include "base/text.h"

#include <ctype.h>
#include <string.h>

static const char prefix[] = "mh=";
#define PREFIX_LEN (sizeof(prefix) - 1)

/* C1 controls are two bytes in UTF-8: C2 80 to C2 9F. */
static bool
has_control(const char *word, size_t len)
{
	const unsigned char *p = (const unsigned char *)word;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] <= ' ' || p[i] == 0x7F ||
		    (p[i] == 0xC2 && i + 1 < len && p[i + 1] < 0xA0))
			return true;
	return false;
}

bool
keyword_is_encoded(const char *word, size_t len)
{
	return len >= PREFIX_LEN && memcmp(word, prefix, PREFIX_LEN) == 0;
}

bool
keyword_encode(struct buf *out, const char *word, size_t len)
{
	size_t i;

	if (len == 0 || has_control(word, len) || !text_is_utf8(word, len))
		return false;
	buf_adds(out, prefix);
	for (i = 0; i < len; i++)
		if (isalnum((unsigned char)word[i]) &&
		    (unsigned char)word[i] < 0x80)
			buf_addc(out, word[i]);
		else
			buf_addf(out, "=%02X", (unsigned char)word[i]);
	return true;
}

static unsigned
keywords_hex_value(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'A' + 10) & 15;
}

void
keyword_decode(struct buf *out, const char *atom)
{
	size_t len = strlen(atom);
	const char *p = atom;

	if (!keyword_is_encoded(atom, len)) {
		buf_adds(out, atom);
		return;
	}
	for (p += PREFIX_LEN; *p != '\0'; p++) {
		if (*p != '=' || p[1] == '\0' || p[2] == '\0') {
			buf_addc(out, *p);
			continue;
		}
		buf_addc(out, (char)(keywords_hex_value(p[1]) << 4 |
				     keywords_hex_value(p[2])));
		p += 2;
	}
}
