/*
 * tsvector.h - text to what PostgreSQL searches, without PostgreSQL's parser.
 *
 * Index and query go through the same words: lower case, without accents,
 * addresses and host names whole and in parts, scripts without blanks as
 * pairs of characters.  Pure functions.
 */
#ifndef MAIL_TSVECTOR_H
#define MAIL_TSVECTOR_H

#include "base/arena.h"
#include "base/buf.h"

struct tsv_input {
	const char *text; /* UTF-8; bad bytes separate words */
	size_t len;
	char weight; /* 'A' .. 'D' */
};

/*
 * Appends a tsvector in PostgreSQL's binary form.  Always a valid one: what
 * goes over PostgreSQL's limits is left out.
 */
void tsvector_build(struct buf *out, const struct tsv_input *inputs, size_t n);

/*
 * What a person types - words, "a phrase", -without, begin* - as the text of a
 * tsquery; to be cast, not parsed by to_tsquery.  NULL when there is nothing
 * to search for.  Never a syntax error.
 */
char *tsquery_build(struct arena *arena, const char *user_query);

#endif
