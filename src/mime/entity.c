/*
 * entity.c - characters that HTML writes by name or by number.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * As the HTML Standard reads them (13.2.5.72 and following): some names need
 * no semicolon, then the longest that fits counts ("&notit;" is "¬it;").
 */
#include "mime/entity.h"

#include "mime/codec.h"
#include "mime/decode.h"

#include <ctype.h>

#include "mime/entity_table.h"

#define LAST_CODE 0x10FFFFu

struct name {
	const char *p;
	size_t len;
};

static int
entity_compare_names(const void *key, const void *item)
{
	const struct name *name = key;
	const struct entity *e = item;
	int order = strncmp(name->p, e->name, name->len);

	return order != 0 ? order : -(e->name[name->len] != '\0');
}

static const struct entity *
entity_find_name(const char *p, size_t len)
{
	struct name name = { p, len };

	return bsearch(&name, entities, sizeof(entities) / sizeof(entities[0]),
	    sizeof(entities[0]), entity_compare_names);
}

/* None without a semicolon is longer than "yacute", or shorter than "lt". */
#define BARE_MIN 2
#define BARE_MAX 6

static const struct entity *
entity_find_longest_bare(const char *p, size_t *len)
{
	const struct entity *e;

	if (*len > BARE_MAX)
		*len = BARE_MAX;
	for (; *len >= BARE_MIN; (*len)--)
		if ((e = entity_find_name(p, *len)) != NULL && e->is_bare)
			return e;
	return NULL;
}

static const char *
entity_read_name(const char *p, const char *end, uint32_t codes[2])
{
	const struct entity *e = NULL;
	size_t len = 0;

	while (p + len < end && len < sizeof(e->name) - 1 &&
	    isalnum((unsigned char)p[len]))
		len++;
	if (p + len < end && p[len] == ';')
		e = entity_find_name(p, len);
	if (e != NULL)
		len++;
	else if ((e = entity_find_longest_bare(p, &len)) == NULL)
		return NULL;
	codes[0] = e->first;
	codes[1] = e->second;
	return p + len;
}

/* A number means windows-1252 where Unicode has control characters. */
static uint32_t
entity_code_of_number(uint32_t n)
{
	if (n >= 0x80 && n < 0xA0)
		return codec_byte(CHARSET_WINDOWS1252, n);
	if (n == 0 || n > LAST_CODE || (n >= 0xD800 && n < 0xE000))
		return CODEC_BAD;
	return n;
}

static const char *
entity_read_number(const char *p, const char *end, uint32_t codes[2])
{
	unsigned base = p < end && (*p | 0x20) == 'x' ? 16 : 10;
	const char *start = p += base == 16;
	uint32_t n = 0;
	unsigned char c;

	for (; p < end; p++) {
		c = (unsigned char)*p;
		if (!(base == 16 ? isxdigit(c) : isdigit(c)))
			break;
		n = n * base + (uint32_t)hex_digit(c);
		if (n > LAST_CODE)
			n = LAST_CODE + 1;
	}
	if (p == start)
		return NULL;
	codes[0] = entity_code_of_number(n);
	codes[1] = 0;
	return p < end && *p == ';' ? p + 1 : p;
}

const char *
entity_read(const char *p, const char *end, uint32_t codes[2])
{
	p++;
	return p < end && *p == '#' ? entity_read_number(p + 1, end, codes)
	    : entity_read_name(p, end, codes);
}
