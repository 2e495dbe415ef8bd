/*
 * mask.c - a password in what a server says.
 *
 * Runs in: hot, pool and job children.  Never blocks.
 *
 * A rolling checksum (Rabin and Karp) modulo a prime of 61 bits with a random
 * base: one multiplication a byte and form, without regard to case.
 */
#include "remote/mask.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define PRIME (((uint64_t)1 << 61) - 1)
/* Fewer letters of base64 are in any text. */
#define BASE64_LEAST 4

static uint64_t
multiply(uint64_t a, uint64_t b)
{
	return (uint64_t)((unsigned __int128)a * b % PRIME);
}

static uint64_t
append(const struct mask *mask, uint64_t sum, char c)
{
	return (multiply(sum, mask->base) +
	    (uint64_t)tolower((unsigned char)c) + 1) % PRIME;
}

static void
add_form(struct mask *mask, const char *text, size_t len, bool is_base64)
{
	struct mask_form *form = &mask->forms[mask->n++];
	size_t i;

	*form = (struct mask_form){ .len = len, .is_base64 = is_base64 };
	for (i = 0; i < len; i++)
		form->sum = append(mask, form->sum, text[i]);
}

static void
add_quoted(struct mask *mask, const char *password)
{
	size_t n = 0, i, len = strlen(password);
	char *quoted = malloc(2 * len + 1);

	if (quoted == NULL)
		abort();
	for (i = 0; i < len; i++) {
		if (password[i] == '"' || password[i] == '\\')
			quoted[n++] = '\\';
		quoted[n++] = password[i];
	}
	if (n > len)
		add_form(mask, quoted, n, false);
	explicit_bzero(quoted, 2 * len + 1);
	free(quoted);
}

/* The letters that depend on the password alone, when `before` bytes (0 to 2)
 * of something else share its first group of three. */
static void
add_base64(struct mask *mask, const char *password, unsigned before)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	size_t len = strlen(password), bit = 6 - before * 8 % 6, n = 0;
	char *letters = malloc(len * 2 + 1);

	if (letters == NULL)
		abort();
	/* Bits counted from the password's first; a group of six begins at
	 * each multiple of six from the word's. */
	for (bit %= 6; bit + 6 <= len * 8; bit += 6) {
		unsigned high = (unsigned char)password[bit / 8];
		unsigned low = bit / 8 + 1 < len ?
		    (unsigned char)password[bit / 8 + 1] : 0;

		letters[n++] = digits[(high << 8 | low) >>
		    (16 - bit % 8 - 6) & 63];
	}
	if (n >= BASE64_LEAST)
		add_form(mask, letters, n, true);
	explicit_bzero(letters, len * 2 + 1);
	free(letters);
}

void
mask_init(struct mask *mask, const char *password)
{
	unsigned before;

	memset(mask, 0, sizeof(*mask));
	if (password[0] == '\0')
		return;
	arc4random_buf(&mask->base, sizeof(mask->base));
	mask->base = mask->base % (PRIME - 1000) + 500;
	add_form(mask, password, strlen(password), false);
	add_quoted(mask, password);
	for (before = 0; before < 3; before++)
		add_base64(mask, password, before);
}

static bool
is_base64(char c)
{
	return isalnum((unsigned char)c) || c == '+' || c == '/' || c == '=';
}

static void
blot(char *text, size_t len, size_t from, const struct mask_form *form)
{
	size_t to = from + form->len;

	while (form->is_base64 && from > 0 && is_base64(text[from - 1]))
		from--;
	while (form->is_base64 && to < len && is_base64(text[to]))
		to++;
	memset(text + from, '*', to - from);
}

/* `plain` is looked at, `text` is changed: a hit must not hide another. */
static void
blot_form(const struct mask *mask, const struct mask_form *form,
    const char *plain, char *text, size_t len)
{
	uint64_t sum = 0, first = 1;
	size_t i;

	if (form->len > len)
		return;
	for (i = 1; i < form->len; i++)
		first = multiply(first, mask->base);
	for (i = 0; i < len; i++) {
		if (i >= form->len)
			sum = (sum + PRIME - multiply(first, (uint64_t)tolower(
			    (unsigned char)plain[i - form->len]) + 1)) % PRIME;
		sum = append(mask, sum, plain[i]);
		if (i + 1 >= form->len && sum == form->sum)
			blot(text, len, i + 1 - form->len, form);
	}
}

void
mask_add(struct buf *out, const struct mask *mask, const char *bytes,
    size_t len)
{
	char *text = buf_reserve(out, len + 1);
	unsigned i;

	memcpy(text, bytes, len);
	for (i = 0; mask != NULL && i < mask->n; i++)
		blot_form(mask, &mask->forms[i], bytes, text, len);
	out->len += len;
	out->data[out->len] = '\0';
}
