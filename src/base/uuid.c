/*
 * uuid.c - identifiers of users, accounts and jobs.
 *
 * Runs in: every process.  Never blocks.
 */
#include "base/uuid.h"

#include <ctype.h>
#include <bsd/stdlib.h>

void
uuid_generate(struct uuid *uuid)
{
	arc4random_buf(uuid->bytes, sizeof(uuid->bytes));
	uuid->bytes[6] = (uint8_t)((uuid->bytes[6] & 0x0F) | 0x40);
	uuid->bytes[8] = (uint8_t)((uuid->bytes[8] & 0x3F) | 0x80);
}

static int
uuid_hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
is_dash_place(size_t i)
{
	return i == 8 || i == 13 || i == 18 || i == 23;
}

int
uuid_parse(const char *text, struct uuid *uuid_r)
{
	struct uuid out;
	size_t i, n = 0;
	int high, low;

	if (strlen(text) != UUID_TEXT_SIZE - 1)
		return -1;
	for (i = 0; i < UUID_TEXT_SIZE - 1;) {
		if (is_dash_place(i)) {
			if (text[i++] != '-')
				return -1;
			continue;
		}
		high = uuid_hex_value(text[i]);
		low = uuid_hex_value(text[i + 1]);
		if (high < 0 || low < 0)
			return -1;
		out.bytes[n++] = (uint8_t)(high << 4 | low);
		i += 2;
	}
	*uuid_r = out;
	return 0;
}

const char *
uuid_format(const struct uuid *uuid, char out[UUID_TEXT_SIZE])
{
	static const char hex[] = "0123456789abcdef";
	size_t i, n = 0;

	for (i = 0; i < sizeof(uuid->bytes); i++) {
		if (is_dash_place(n))
			out[n++] = '-';
		out[n++] = hex[uuid->bytes[i] >> 4];
		out[n++] = hex[uuid->bytes[i] & 15];
	}
	out[n] = '\0';
	return out;
}

bool
uuid_is_equal(const struct uuid *a, const struct uuid *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool
uuid_is_null(const struct uuid *uuid)
{
	static const struct uuid null;

	return uuid_is_equal(uuid, &null);
}
