/*
 * parse.h - the words of a command, from a buffer that holds it whole.
 *
 * The buffer holds the line with its literals as they came ("{5}\r\nhello").
 * Each function takes its thing and moves on, or returns false and leaves the
 * command for a BAD.  Slices point into the buffer or into the arena.
 */
#ifndef MOCKIMAPD_PARSE_H
#define MOCKIMAPD_PARSE_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct parse {
	const char *p, *end;
	struct arena *arena; /* dies with the command */
};

struct slice {
	const char *p;
	size_t len;
};
bool slice_is(struct slice s, const char *word); /* ASCII, any case */
char *slice_dup(struct slice s, struct arena *arena);

bool parse_end(const struct parse *in); /* nothing is left */
bool parse_char(struct parse *in, char c);
/* A whole atom, in any case. */
bool parse_word(struct parse *in, const char *word);
static inline bool
parse_space(struct parse *in)
{
	return parse_char(in, ' ');
}
bool parse_atom(struct parse *in, struct slice *s_r);
bool parse_astring(struct parse *in, struct slice *s_r);
bool parse_string(struct parse *in, struct slice *s_r); /* quoted or literal */
bool parse_list_mailbox(struct parse *in, struct slice *s_r); /* with % and * */
bool parse_number(struct parse *in, uint64_t max, uint64_t *n_r);
/* "{5}\r\nhello" or "{5+}..."; only a literal. */
bool parse_literal(struct parse *in, struct slice *s_r);

/* A set of UIDs or sequence numbers; `*` is SET_LAST until resolved. */
#define SET_LAST 0
struct range {
	uint32_t from, to; /* from <= to once resolved */
};
struct set {
	struct range *ranges;
	size_t n;
};
bool parse_set(struct parse *in, struct set *set_r);
/* `*` becomes `last`; ranges that were the wrong way round are turned. */
void set_resolve(struct set *set, uint32_t last);
bool set_has(const struct set *set, uint32_t n);

/* Flags: system flags as bits, keywords by name. */
enum {
	FLAG_SEEN = 1,
	FLAG_ANSWERED = 2,
	FLAG_FLAGGED = 4,
	FLAG_DELETED = 8,
	FLAG_DRAFT = 16,
};
#define KEYWORDS_MAX 26
struct flag_list {
	unsigned flags;
	char *keywords[KEYWORDS_MAX];
	size_t n_keywords;
};
/* "(\Seen foo)" or, when `may_be_bare`, the same without parentheses. */
bool parse_flags(struct parse *in, bool may_be_bare, struct flag_list *list_r);
/* One flag by name; false: no such system flag, or no keyword. */
bool flag_parse(struct slice s, struct arena *arena, struct flag_list *list);
extern const char *const flag_names[5]; /* by bit */

/* "dd-Mmm-yyyy" and " hh:mm:ss +zzzz" after it. */
bool parse_day(struct slice s, int64_t *secs_r);
bool parse_date_time(struct slice s, int64_t *secs_r);

#endif
