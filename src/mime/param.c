/*
 * param.c - Content-Type and Content-Disposition with their parameters.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * gmime's reading loses names in the cases of L184.  Here a missing ';' and
 * blanks in an unquoted value are forgiven, RFC 2231 pieces are put in the
 * order of their numbers and converted once, and name* wins over name.  What
 * is not asked for is skipped without a copy.
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
	size_t place;	   /* in the header */
};

static bool
param_is_blank(char c)
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

	if (p == end || !param_is_blank(*p))
		return false;
	while (p < end && param_is_blank(*p))
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
		for (p++;
		     p < end && param_is_blank(p[-1]) && param_is_blank(*p);
		     p++)
			;
	}
	return p;
}

/* What is inside of the quotes at p; behind them is returned. */
static const char *
param_read_quoted(
    struct arena *arena, const char *p, const char *end, struct piece *piece)
{
	const char *start = p + 1, *close = start;
	char *out;
	size_t n = 0;

	while (close < end && *close != '"')
		close += *close == '\\' && close + 1 < end ? 2 : 1;
	if (close > end)
		close = end;
	if (piece != NULL) {
		out = arena_alloc(arena, (size_t)(close - start) + 1);
		for (p = start; p < close; p++) {
			if (*p == '\\' && p + 1 < close &&
			    (p[1] == '"' || p[1] == '\\'))
				p++;
			out[n++] = *p;
		}
		piece->value = out;
		piece->len = n;
	}
	return close < end ? close + 1 : end;
}

/*
 * The value at p; its end is returned.  Without a piece it is only skipped:
 * of thousands of parameters nothing is kept but those that are asked for.
 */
static const char *
read_value(struct arena *arena, const char *p, const char *end,
    struct piece *piece)
{
	const char *start;

	while (p < end && param_is_blank(*p))
		p++;
	if (p < end && *p == '"')
		return param_read_quoted(arena, p, end, piece);
	start = p;
	p = skip_to_param(p, end);
	if (piece == NULL)
		return p;
	piece->value = start;
	piece->len = (size_t)(p - start);
	while (piece->len > 0 && param_is_blank(start[piece->len - 1]))
		piece->len--;
	return p;
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
	struct piece piece;
	bool is_wanted;

	p = skip_to_param(p, end); /* behind the word itself */
	while (p < end && n < PIECES_MAX) {
		while (p < end && (param_is_blank(*p) || *p == ';'))
			p++;
		for (start = p; p < end && is_name_char(*p); p++)
			;
		is_wanted = (size_t)(p - start) >= name_len &&
		    strncasecmp(start, name, name_len) == 0 &&
		    read_suffix(start + name_len, p, &piece);
		while (p < end && param_is_blank(*p))
			p++;
		if (p == end || *p != '=') {
			p = skip_to_param(p, end); /* no parameter */
			continue;
		}
		p = read_value(arena, p + 1, end, is_wanted ? &piece : NULL);
		if (is_wanted) {
			piece.place = n;
			pieces[n++] = piece;
		}
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

/* A language tag, or none at all. */
static bool
is_language(const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)p[i]) && p[i] != '-' && p[i] != '_')
			return false;
	return len <= 16;
}

/*
 * Takes charset'language' off the first piece.  NULL: it has none, as in
 * "Ann's and Bob's.pdf".
 */
static const char *
take_charset(struct arena *arena, struct piece *piece)
{
	const char *start = piece->value, *end = start + piece->len, *q, *r;

	q = memchr(start, '\'', piece->len);
	if (q == NULL || (r = memchr(q + 1, '\'', (size_t)(end - q - 1))) ==
	    NULL || !is_language(q + 1, (size_t)(r - q - 1)) ||
	    memchr(start, ' ', (size_t)(q - start)) != NULL)
		return NULL;
	piece->len = (size_t)(end - r - 1);
	piece->value = r + 1;
	return arena_strndup(arena, start, (size_t)(q - start));
}

static bool
has_known_charset(const struct piece *piece)
{
	const char *q = memchr(piece->value, '\'', piece->len);

	return q != NULL && charset_is_known(piece->value,
	    (size_t)(q - piece->value));
}

/* Quotes behind the charset, where none belong: utf-8''"a.pdf" */
static void
strip_quotes(struct piece *piece)
{
	if (piece->len >= 2 && piece->value[0] == '"' &&
	    piece->value[piece->len - 1] == '"') {
		piece->value++;
		piece->len -= 2;
	}
}

/* The whole is -1, and before the numbers; what is encoded before plain. */
static int
compare_pieces(const void *a, const void *b)
{
	const struct piece *one = a, *other = b;

	if (one->number != other->number)
		return one->number < other->number ? -1 : 1;
	if (one->is_encoded != other->is_encoded)
		return one->is_encoded ? -1 : 1;
	return one->place < other->place ? -1 : 1;
}

/*
 * The whole if there is no better: what is encoded wins, then what comes in
 * pieces.  These may begin at 1, and miss some.
 */
static size_t
choose_pieces(struct piece *pieces, size_t n, struct piece **first)
{
	size_t i, last, n_whole = 0;

	qsort(pieces, n, sizeof(*pieces), compare_pieces);
	while (n_whole < n && pieces[n_whole].number < 0)
		n_whole++;
	*first = pieces;
	if (n_whole == n || (n_whole > 0 && pieces[0].is_encoded))
		return 1;
	*first = pieces + n_whole;
	for (last = n_whole, i = n_whole + 1; i < n; i++)
		if (pieces[i].number != pieces[last].number)
			pieces[++last] = pieces[i];
	return last + 1 - n_whole;
}

const char *
parameter_bytes(struct arena *arena, const struct field *field,
    const char *name, size_t *len_r, const char **charset_r)
{
	struct piece pieces[PIECES_MAX], *first;
	const char *said = NULL;
	size_t n, i, len = 0;
	char *out;

	*charset_r = NULL;
	if (field->value == NULL ||
	    (n = find_pieces(arena, field, name, pieces)) == 0)
		return NULL;
	n = choose_pieces(pieces, n, &first);
	/* filename="utf-8''%C3%84.pdf": the star was forgotten. */
	first->is_encoded |= has_known_charset(first) &&
	    memchr(first->value, '%', first->len) != NULL;
	for (i = 0; i < n; i++) {
		/* Some begin each piece with it. */
		if (first[i].is_encoded &&
		    (i == 0 || has_known_charset(&first[i])))
			said = take_charset(arena, &first[i]);
		if (said != NULL && *charset_r == NULL)
			*charset_r = said;
		if (first[i].is_encoded)
			strip_quotes(&first[i]);
		len += first[i].len;
	}
	out = arena_alloc(arena, len + 1);
	len = 0;
	for (i = 0; i < n; i++)
		len += add_piece(out + len, &first[i]);
	out[len] = '\0';
	*len_r = len;
	return out;
}

const char *
parameter_text(struct arena *arena, const struct field *field, const char *name)
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
	return encoded_text(arena, bytes, len);
}

enum charset
param_charset(struct arena *arena, const struct field *field)
{
	const char *label, *ignored;
	size_t len;

	label = parameter_bytes(arena, field, "charset", &len, &ignored);
	return label == NULL ? CHARSET_GUESSED : charset_find(label, len);
}
