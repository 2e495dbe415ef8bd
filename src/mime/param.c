/*
 * param.c - Content-Type and Content-Disposition with their parameters.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * gmime's reading loses names in the cases of L184.  Here a missing ';' and
 * blanks in an unquoted value are forgiven, RFC 2231 pieces are put in the
 * order of their numbers and converted once, and name* wins over name.
 */
#include "mime/param.h"

#include "base/text.h"
#include "mime/charset.h"
#include "mime/decode.h"
#include "mime/encoded.h"

#include <ctype.h>

#define PIECES_MAX 200

struct piece {
	const char *value; /* unquoted */
	size_t len;
	int number;	   /* -1: the whole */
	bool is_encoded;   /* percent signs and charset */
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool
is_name_char(char c)
{
	return (unsigned char)c > 0x20 && strchr("=;\"(),:<>@[]", c) == NULL;
}

const char *
param_word(struct arena *arena, const struct field *field)
{
	size_t n = 0, i;
	char *word;

	if (field->value == NULL)
		return "";
	while (n < field->len && is_name_char(field->value[n]))
		n++;
	word = text_clean(arena, field->value, n, NULL);
	for (i = 0; word[i] != '\0'; i++)
		word[i] = (char)tolower((unsigned char)word[i]);
	return word;
}

const char *
param_type(struct arena *arena, const struct field *field)
{
	const char *word = param_word(arena, field);
	const char *slash = strchr(word, '/'), *c;

	if (slash == NULL || slash == word || slash[1] == '\0' ||
	    strlen(word) > 127)
		return "text/plain";
	for (c = word; *c != '\0'; c++)
		if ((unsigned char)*c >= 0x80 || *c == 0x7F)
			return "application/octet-stream";
	return word;
}

/* Whether a new parameter begins here: blanks, name, '='. */
static bool
begins_param(const char *p, const char *end)
{
	const char *name;

	if (p == end || !is_blank(*p))
		return false;
	while (p < end && is_blank(*p))
		p++;
	for (name = p; p < end && is_name_char(*p); p++)
		;
	return p > name && p < end && *p == '=';
}

/* On to the next ';' or to what looks like a parameter without one. */
static const char *
skip_to_param(const char *p, const char *end)
{
	while (p < end && *p != ';' && !begins_param(p, end)) {
		/* One look for a run of blanks, however long. */
		for (p++; p < end && is_blank(p[-1]) && is_blank(*p); p++)
			;
	}
	return p;
}

/* The value at p; its end is returned. */
static const char *
read_value(struct arena *arena, const char *p, const char *end,
    struct piece *piece)
{
	char *out;
	size_t n = 0;

	while (p < end && is_blank(*p))
		p++;
	if (p == end || *p != '"') {
		piece->value = p;
		p = skip_to_param(p, end);
		piece->len = (size_t)(p - piece->value);
		while (piece->len > 0 && is_blank(piece->value[piece->len - 1]))
			piece->len--;
		return p;
	}
	out = arena_alloc(arena, (size_t)(end - p));
	for (p++; p < end && *p != '"'; p++) {
		if (*p == '\\' && p + 1 < end &&
		    (p[1] == '"' || p[1] == '\\'))
			p++;
		out[n++] = *p;
	}
	piece->value = out;
	piece->len = n;
	return p < end ? p + 1 : p;
}

/* What stands behind the wanted name: "", "*", "*N", "*N*". */
static bool
read_suffix(const char *p, const char *end, struct piece *piece)
{
	piece->number = -1;
	piece->is_encoded = false;
	if (p == end)
		return true;
	if (*p++ != '*')
		return false;
	if (p == end) {
		piece->is_encoded = true;
		return true;
	}
	for (piece->number = 0; p < end && isdigit((unsigned char)*p); p++) {
		piece->number = piece->number * 10 + (*p - '0');
		if (piece->number > 9999)
			return false;
	}
	piece->is_encoded = p < end && *p == '*';
	return p + piece->is_encoded == end;
}

static size_t
find_pieces(struct arena *arena, const struct field *field, const char *name,
    struct piece *pieces)
{
	const char *p = field->value, *end = p + field->len, *start;
	size_t n = 0, name_len = strlen(name);
	struct piece piece, ignored;
	bool is_wanted;

	p = skip_to_param(p, end); /* behind the word itself */
	while (p < end && n < PIECES_MAX) {
		while (p < end && (is_blank(*p) || *p == ';'))
			p++;
		for (start = p; p < end && is_name_char(*p); p++)
			;
		is_wanted = (size_t)(p - start) >= name_len &&
		    strncasecmp(start, name, name_len) == 0 &&
		    read_suffix(start + name_len, p, &piece);
		while (p < end && is_blank(*p))
			p++;
		if (p == end || *p != '=') {
			p = skip_to_param(p, end); /* no parameter */
			continue;
		}
		p = read_value(arena, p + 1, end, is_wanted ? &piece :
		    &ignored);
		if (is_wanted)
			pieces[n++] = piece;
	}
	return n;
}

static size_t
add_piece(char *out, const struct piece *piece)
{
	size_t i, n = 0;

	for (i = 0; i < piece->len; i++) {
		if (piece->is_encoded && piece->value[i] == '%' &&
		    i + 2 < piece->len && hex_pair(piece->value + i + 1) >= 0) {
			out[n++] = (char)hex_pair(piece->value + i + 1);
			i += 2;
		} else {
			out[n++] = piece->value[i];
		}
	}
	return n;
}

/* Takes charset'language' off the first piece. */
static const char *
take_charset(struct arena *arena, struct piece *piece)
{
	const char *end = piece->value + piece->len, *q, *r;
	const char *charset;

	q = memchr(piece->value, '\'', piece->len);
	if (q == NULL || (r = memchr(q + 1, '\'', (size_t)(end - q - 1))) ==
	    NULL)
		return NULL;
	charset = arena_strndup(arena, piece->value,
	    (size_t)(q - piece->value));
	piece->len = (size_t)(end - r - 1);
	piece->value = r + 1;
	return charset;
}

/* The piece with that number; the whole is -1.  An encoded one wins. */
static struct piece *
find_piece(struct piece *pieces, size_t n, int number)
{
	struct piece *found = NULL;
	size_t i;

	for (i = 0; i < n; i++)
		if (pieces[i].number == number && (found == NULL ||
		    (pieces[i].is_encoded && !found->is_encoded)))
			found = &pieces[i];
	return found;
}

const char *
parameter_bytes(struct arena *arena, const struct field *field,
    const char *name, size_t *len_r, const char **charset_r)
{
	struct piece pieces[PIECES_MAX], *piece, *whole;
	size_t n, i, len = 0;
	char *out;
	int number;

	*charset_r = NULL;
	if (field->value == NULL ||
	    (n = find_pieces(arena, field, name, pieces)) == 0)
		return NULL;
	for (i = 0; i < n; i++)
		len += pieces[i].len;
	out = arena_alloc(arena, len + 1);
	len = 0;
	whole = find_piece(pieces, n, -1);
	piece = find_piece(pieces, n, 0);
	if (whole != NULL && (whole->is_encoded || piece == NULL)) {
		if (whole->is_encoded)
			*charset_r = take_charset(arena, whole);
		len = add_piece(out, whole);
	} else {
		for (number = 0; (piece = find_piece(pieces, n, number)) !=
		    NULL; number++) {
			if (number == 0 && piece->is_encoded)
				*charset_r = take_charset(arena, piece);
			len += add_piece(out + len, piece);
		}
	}
	out[len] = '\0';
	*len_r = len;
	return out;
}

const char *
parameter_text(struct arena *arena, const struct field *field, const char *name,
    const char *charset)
{
	const char *said, *bytes, *text;
	size_t len;

	bytes = parameter_bytes(arena, field, name, &len, &said);
	if (bytes == NULL)
		return NULL;
	if (said != NULL && *said != '\0') {
		text = charset_decode(arena, said, strlen(said), bytes, len,
		    &len);
		return arena_strndup(arena, text, len);
	}
	return encoded_text(arena, bytes, len, charset);
}
