/*
 * mask.c - a password in what a server says.
 *
 * Runs in: hot, pool and job children.  Never blocks.
 *
 * A rolling checksum (Rabin and Karp) modulo a prime of 61 bits with a random
 * base: one multiplication a byte and form, without regard to case.  While the
 * login lasts the password itself is at hand, and what a line's end or the
 * server's patience has cut off is found, too.
 */
#include "net/mask.h"

#include "base/xmem.h"

#include <ctype.h>
#include <string.h>

#define PRIME (((uint64_t)1 << 61) - 1)
/* Fewer letters of base64 are in any text. */
#define BASE64_LEAST 4
/* Fewer letters tell nothing: at the edge of a line, and within it. */
#define EDGE_LEAST 3
#define PIECE_LEAST 4

/* --- checksums ----------------------------------------------------------- */

static uint64_t
mask_multiply(uint64_t a, uint64_t b)
{
	return (uint64_t)((unsigned __int128)a * b % PRIME);
}

static uint64_t
mask_append(const struct mask *mask, uint64_t sum, char c)
{
	return (mask_multiply(sum, mask->base) +
		   (uint64_t)tolower((unsigned char)c) + 1) %
	       PRIME;
}

/* --- forms --------------------------------------------------------------- */

typedef void on_form(void *arg, const char *text, size_t len, bool is_base64);

static void
form_quoted(const char *password, on_form *on, void *arg)
{
	size_t n = 0, i, len = strlen(password);
	char *quoted = xmalloc(2 * len + 1);

	for (i = 0; i < len; i++) {
		if (password[i] == '"' || password[i] == '\\')
			quoted[n++] = '\\';
		quoted[n++] = password[i];
	}
	if (n > len)
		on(arg, quoted, n, false);
	explicit_bzero(quoted, 2 * len + 1);
	free(quoted);
}

/* The letters that depend on the password alone, when `before` bytes (0 to 2)
 * of something else share its first group of three. */
static void
form_base64(const char *password, unsigned before, on_form *on, void *arg)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	size_t len = strlen(password), bit = 6 - before * 8 % 6, n = 0;
	char *letters = xmalloc(len * 2 + 1);

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
		on(arg, letters, n, true);
	explicit_bzero(letters, len * 2 + 1);
	free(letters);
}

static void
each_form(const char *password, on_form *on, void *arg)
{
	unsigned before;

	if (password[0] == '\0')
		return;
	on(arg, password, strlen(password), false);
	form_quoted(password, on, arg);
	for (before = 0; before < 3; before++)
		form_base64(password, before, on, arg);
}

static void
add_form(void *arg, const char *text, size_t len, bool is_base64)
{
	struct mask *mask = arg;
	struct mask_form *form = &mask->forms[mask->n++];
	size_t i;

	*form = (struct mask_form){ .len = len, .is_base64 = is_base64 };
	for (i = 0; i < len; i++)
		form->sum = mask_append(mask, form->sum, text[i]);
}

void
mask_init(struct mask *mask, const char *password)
{
	memset(mask, 0, sizeof(*mask));
	arc4random_buf(&mask->base, sizeof(mask->base));
	mask->base = mask->base % (PRIME - 1000) + 500;
	each_form(password, add_form, mask);
	mask->password = password;
}

void
mask_forget(struct mask *mask)
{
	mask->password = NULL;
}

/* --- finding them -------------------------------------------------------- */

static bool
mask_is_same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static bool
is_base64(char c)
{
	return isalnum((unsigned char)c) || c == '+' || c == '/' || c == '=';
}

/* Of base64 the whole word goes. */
static void
mask_blot(char *text, size_t len, size_t from, size_t to, bool is_word)
{
	while (is_word && from > 0 && is_base64(text[from - 1]))
		from--;
	while (is_word && to < len && is_base64(text[to]))
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
		first = mask_multiply(first, mask->base);
	for (i = 0; i < len; i++) {
		if (i >= form->len)
			sum = (sum + PRIME -
				  mask_multiply(first,
				      (uint64_t)tolower(
					  (unsigned char)plain[i - form->len]) +
					  1)) %
			      PRIME;
		sum = mask_append(mask, sum, plain[i]);
		if (i + 1 >= form->len && sum == form->sum)
			mask_blot(text, len, i + 1 - form->len, i + 1,
			    form->is_base64);
	}
}

struct line {
	const char *plain;
	char *text;
	size_t len;
};

static bool
is_letter(const struct line *line, size_t at)
{
	return at < line->len && isalnum((unsigned char)line->plain[at]);
}

/* The beginning of a form that the end of the line cuts off, or that stands
 * before something else: `LOGIN "ann" "gehe...`. */
static void
blot_beginnings(const struct line *line, const char *form, size_t n,
    bool is_base64)
{
	size_t i, k;

	for (i = 0; i < line->len; i++) {
		if (!is_base64 && i > 0 && is_letter(line, i - 1))
			continue;
		for (k = 0; k < n && i + k < line->len &&
			    mask_is_same(form[k], line->plain[i + k]);
		     k++)
			;
		if ((k >= EDGE_LEAST && i + k == line->len) ||
		    (k >= PIECE_LEAST && !is_letter(line, i + k)))
			mask_blot(line->text, line->len, i, i + k, is_base64);
	}
}

/* The rest of one that the line before has cut off. */
static void
blot_rest(const struct line *line, const char *form, size_t n, bool is_base64)
{
	size_t from = 0, k, i;

	while (from < line->len && line->plain[from] == ' ')
		from++;
	for (k = n - 1; k >= EDGE_LEAST && k < n; k--) {
		if (k > line->len - from)
			continue;
		for (i = 0; i < k && mask_is_same(form[n - k + i],
					 line->plain[from + i]);
		     i++)
			;
		if (i == k && (is_base64 || !is_letter(line, from + k))) {
			mask_blot(
			    line->text, line->len, from, from + k, is_base64);
			return;
		}
	}
}

static void
blot_pieces(void *arg, const char *form, size_t n, bool is_base64)
{
	blot_beginnings(arg, form, n, is_base64);
	blot_rest(arg, form, n, is_base64);
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
	if (mask != NULL && mask->password != NULL) {
		struct line line = { bytes, text, len };

		each_form(mask->password, blot_pieces, &line);
	}
	out->len += len;
	out->data[out->len] = '\0';
}
