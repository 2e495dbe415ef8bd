/*
 * parse.c - the words of a command, from a buffer that holds it whole.
 *
 * Runs in: mockimapd.  Never blocks.
 *
 * Strict on purpose: a client that sends two blanks, an eight-bit atom or a
 * descending nothing hears of it here and not first from a provider.
 */
#include "config.h"

#include "parse.h"

#include <ctype.h>
#include <strings.h>

#define RANGES_MAX 20000

const char *const flag_names[5] = { "\\Seen", "\\Answered", "\\Flagged",
	"\\Deleted", "\\Draft" };

bool
slice_is(struct slice s, const char *word)
{
	return s.len == strlen(word) && strncasecmp(s.p, word, s.len) == 0;
}

char *
slice_dup(struct slice s, struct arena *arena)
{
	return arena_strndup(arena, s.p, s.len);
}

bool
parse_end(const struct parse *in)
{
	return in->p == in->end;
}

bool
parse_char(struct parse *in, char c)
{
	if (in->p == in->end || *in->p != c)
		return false;
	in->p++;
	return true;
}

static bool
is_atom_char(char c)
{
	unsigned char u = (unsigned char)c;

	return u > ' ' && u < 0x7f && strchr("(){%*\"\\]", c) == NULL;
}

static bool
is_astring_char(char c)
{
	return is_atom_char(c) || c == ']';
}

static bool
is_list_char(char c)
{
	return is_astring_char(c) || c == '%' || c == '*';
}

static bool
parse_run(struct parse *in, bool (*is_member)(char), struct slice *s_r)
{
	const char *p = in->p;

	while (p < in->end && is_member(*p))
		p++;
	if (p == in->p)
		return false;
	*s_r = (struct slice){ in->p, (size_t)(p - in->p) };
	in->p = p;
	return true;
}

bool
parse_atom(struct parse *in, struct slice *s_r)
{
	return parse_run(in, is_atom_char, s_r);
}

bool
parse_word(struct parse *in, const char *word)
{
	struct parse ahead = *in;
	struct slice s;

	if (!parse_atom(&ahead, &s) || !slice_is(s, word))
		return false;
	*in = ahead;
	return true;
}

static bool
parse_quoted(struct parse *in, struct slice *s_r)
{
	const char *p = in->p + 1;
	char *out = arena_alloc(in->arena, (size_t)(in->end - in->p));
	size_t len = 0;

	for (; p < in->end && *p != '"'; p++) {
		if (*p == '\\' && (++p == in->end ||
			(*p != '"' && *p != '\\')))
			return false;
		if (*p == '\r' || *p == '\n' || *p == '\0')
			return false;
		out[len++] = *p;
	}
	if (p == in->end)
		return false;
	in->p = p + 1;
	*s_r = (struct slice){ out, len };
	return true;
}

bool
parse_literal(struct parse *in, struct slice *s_r)
{
	struct parse ahead = *in;
	uint64_t len;

	if (!parse_char(&ahead, '{') ||
	    !parse_number(&ahead, UINT32_MAX, &len))
		return false;
	parse_char(&ahead, '+');
	if (!parse_char(&ahead, '}') || !parse_char(&ahead, '\r') ||
	    !parse_char(&ahead, '\n') || (size_t)(ahead.end - ahead.p) < len)
		return false;
	*s_r = (struct slice){ ahead.p, (size_t)len };
	ahead.p += len;
	*in = ahead;
	return true;
}

bool
parse_string(struct parse *in, struct slice *s_r)
{
	if (in->p == in->end)
		return false;
	if (*in->p == '"')
		return parse_quoted(in, s_r);
	return parse_literal(in, s_r);
}

static bool
parse_string_or(struct parse *in, bool (*is_member)(char), struct slice *s_r)
{
	if (in->p < in->end && (*in->p == '"' || *in->p == '{'))
		return parse_string(in, s_r);
	return parse_run(in, is_member, s_r);
}

bool
parse_astring(struct parse *in, struct slice *s_r)
{
	return parse_string_or(in, is_astring_char, s_r);
}

bool
parse_list_mailbox(struct parse *in, struct slice *s_r)
{
	return parse_string_or(in, is_list_char, s_r);
}

bool
parse_number(struct parse *in, uint64_t max, uint64_t *n_r)
{
	const char *p = in->p;
	uint64_t n = 0;

	for (; p < in->end && isdigit((unsigned char)*p); p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		if (n > (max - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	if (p == in->p)
		return false;
	in->p = p;
	*n_r = n;
	return true;
}

static bool
parse_set_number(struct parse *in, uint32_t *n_r)
{
	uint64_t n;

	if (parse_char(in, '*')) {
		*n_r = SET_LAST;
		return true;
	}
	if (!parse_number(in, UINT32_MAX, &n) || n == 0)
		return false;
	*n_r = (uint32_t)n;
	return true;
}

bool
parse_set(struct parse *in, struct set *set_r)
{
	size_t commas = 0;
	struct range *ranges;

	for (const char *p = in->p; p < in->end && *p != ' '; p++)
		commas += *p == ',';
	if (commas >= RANGES_MAX)
		return false;
	ranges = ARENA_ARRAY(in->arena, struct range, commas + 1);
	*set_r = (struct set){ ranges, 0 };
	do {
		struct range *range = &ranges[set_r->n++];

		if (!parse_set_number(in, &range->from))
			return false;
		range->to = range->from;
		if (parse_char(in, ':') && !parse_set_number(in, &range->to))
			return false;
	} while (parse_char(in, ','));
	return true;
}

void
set_resolve(struct set *set, uint32_t last)
{
	for (size_t i = 0; i < set->n; i++) {
		struct range *range = &set->ranges[i];

		if (range->from == SET_LAST)
			range->from = last;
		if (range->to == SET_LAST)
			range->to = last;
		if (range->from > range->to) {
			uint32_t from = range->from;

			range->from = range->to;
			range->to = from;
		}
	}
}

bool
set_has(const struct set *set, uint32_t n)
{
	for (size_t i = 0; i < set->n; i++)
		if (n >= set->ranges[i].from && n <= set->ranges[i].to)
			return true;
	return false;
}

static bool
add_keyword(struct slice s, struct arena *arena, struct flag_list *list)
{
	for (size_t i = 0; i < list->n_keywords; i++)
		if (slice_is(s, list->keywords[i]))
			return true;
	if (list->n_keywords == KEYWORDS_MAX || s.len > 64)
		return false;
	list->keywords[list->n_keywords++] = slice_dup(s, arena);
	return true;
}

bool
flag_parse(struct slice s, struct arena *arena, struct flag_list *list)
{
	if (s.len == 0)
		return false;
	for (unsigned i = 0; i < 5; i++)
		if (slice_is(s, flag_names[i])) {
			list->flags |= 1U << i;
			return true;
		}
	for (size_t i = 0; i < s.len; i++)
		if (!is_atom_char(s.p[i]))
			return false;
	return add_keyword(s, arena, list);
}

static bool
parse_flag(struct parse *in, struct flag_list *list)
{
	const char *begin = in->p;
	struct slice s;

	parse_char(in, '\\');
	if (!parse_atom(in, &s))
		return false;
	return flag_parse((struct slice){ begin, (size_t)(in->p - begin) },
	    in->arena, list);
}

bool
parse_flags(struct parse *in, bool may_be_bare, struct flag_list *list_r)
{
	bool is_list = parse_char(in, '(');

	*list_r = (struct flag_list){ 0 };
	if (!is_list && !may_be_bare)
		return false;
	if (is_list && parse_char(in, ')'))
		return true;
	do {
		if (!parse_flag(in, list_r))
			return false;
	} while (parse_space(in));
	return !is_list || parse_char(in, ')');
}

static bool
parse_month(struct parse *in, int *month_r)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	if (in->end - in->p < 3)
		return false;
	for (int i = 0; i < 12; i++)
		if (strncasecmp(in->p, months + 3 * (size_t)i, 3) == 0) {
			*month_r = i;
			in->p += 3;
			return true;
		}
	return false;
}

static bool
take_day(struct parse *in, struct tm *tm_r)
{
	uint64_t day, year;

	*tm_r = (struct tm){ 0 };
	parse_space(in);
	if (!parse_number(in, 31, &day) || !parse_char(in, '-') ||
	    !parse_month(in, &tm_r->tm_mon) || !parse_char(in, '-') ||
	    !parse_number(in, 9999, &year) || day == 0 || year < 1900)
		return false;
	tm_r->tm_mday = (int)day;
	tm_r->tm_year = (int)year - 1900;
	return true;
}

bool
parse_day(struct slice s, int64_t *secs_r)
{
	struct parse in = { .p = s.p, .end = s.p + s.len };
	struct tm tm;

	if (!take_day(&in, &tm) || !parse_end(&in))
		return false;
	*secs_r = timegm(&tm);
	return true;
}

bool
parse_date_time(struct slice s, int64_t *secs_r)
{
	struct parse in = { .p = s.p, .end = s.p + s.len };
	uint64_t hour, minute, second, zone;
	struct tm tm;
	int sign;

	if (!take_day(&in, &tm) || !parse_space(&in) ||
	    !parse_number(&in, 23, &hour) || !parse_char(&in, ':') ||
	    !parse_number(&in, 59, &minute) || !parse_char(&in, ':') ||
	    !parse_number(&in, 60, &second) || !parse_space(&in))
		return false;
	sign = parse_char(&in, '-') ? -1 : parse_char(&in, '+') ? 1 : 0;
	if (sign == 0 || !parse_number(&in, 1400, &zone) || !parse_end(&in))
		return false;
	*secs_r = timegm(&tm) + (int64_t)(hour * 3600 + minute * 60 + second) -
	    sign * (int64_t)(zone / 100 * 3600 + zone % 100 * 60);
	return true;
}
