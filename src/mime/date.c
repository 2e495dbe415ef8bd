/*
 * date.c - the Date header, as mailers really write it.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * The words are taken as they come: a name of a month in any language, a time
 * with colons (or dots), a zone with a sign or a name, then numbers in the
 * order day, year.  So RFC 5322, its obsolete forms, asctime and most
 * inventions are one case.  What is left incomplete, or has a zone that nobody
 * knows, is no date: the time of arrival is nearer than a guess.
 */
#include "mime/date.h"

#include "base/text.h"

#include <ctype.h>
#include <glib.h>
#include <stdlib.h>

#include "mime/date_tables.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define WORD_MAX sizeof(months[0].name)

struct date {
	const unsigned char *p, *end;
	int64_t year;
	int month, day;		   /* 0: not seen yet */
	int hour, minute, second;  /* hour -1: not seen yet */
	int zone_minutes;
	bool has_zone, has_year, is_pm, is_am;
	bool is_zone_unknown; /* a word where the zone stands */
	bool is_month_first;  /* before any number */
	bool is_month_next;   /* "thang 11" */
};

/* --- words --------------------------------------------------------------- */

/* The word at p in small letters, cut when it is too long; moves behind it. */
static void
date_take_word(struct date *d, char word[WORD_MAX])
{
	size_t n = 0;
	unsigned len;

	while (d->p < d->end && (isalpha(*d->p) || *d->p >= 0x80)) {
		len = text_utf8_char(d->p, (size_t)(d->end - d->p));
		if (len > 0 && n + 4 < WORD_MAX)
			n += text_encode(word + n,
			    g_unichar_tolower(text_code(d->p, len)));
		d->p += len == 0 ? 1 : len;
	}
	word[n] = '\0';
}

static int
date_compare_month(const void *word, const void *month)
{
	return strcmp(word, ((const struct month *)month)->name);
}

static int
date_compare_zone(const void *word, const void *zone)
{
	return strcasecmp(word, ((const struct zone *)zone)->name);
}

static const struct zone *
date_find_zone(const char *word)
{
	return bsearch(word, zones, LENGTH(zones), sizeof(zones[0]),
	    date_compare_zone);
}

/* What may stand behind a time and says nothing of its zone. */
static bool
is_filler(const char *word)
{
	static const char *const fillers[] = { "mon", "tue", "wed", "thu",
		"fri", "sat", "sun", "uhr", "uur", "h", "hs", "hrs", "klo",
		"de", "del", "г" };
	size_t i;

	for (i = 0; i < LENGTH(fillers); i++)
		if (strcmp(fillers[i], word) == 0)
			return true;
	return false;
}

/* "am", "p.m.", and their like elsewhere. */
static bool
date_read_half(struct date *d, const char *word)
{
	static const struct {
		const char *text;
		bool is_pm;
	} halves[] = { { "下午", true }, { "午後", true }, { "오후", true },
		{ "上午", false }, { "午前", false }, { "오전", false } };
	const unsigned char *p = d->p;
	size_t i;

	for (i = 0; (unsigned char)word[0] >= 0x80 && i < LENGTH(halves); i++)
		if (strstr(word, halves[i].text) != NULL) {
			*(halves[i].is_pm ? &d->is_pm : &d->is_am) = true;
			return true;
		}
	if (d->hour < 0 || (word[0] != 'a' && word[0] != 'p'))
		return false;
	if (word[1] == '\0') { /* "p. m." */
		while (p < d->end && (*p == '.' || *p == ' '))
			p++;
		if (p == d->end || (*p | 0x20) != 'm')
			return false;
		d->p = p + 1;
	} else if (strcmp(word + 1, "m") != 0) {
		return false;
	}
	*(word[0] == 'p' ? &d->is_pm : &d->is_am) = true;
	return true;
}

/* Behind the time. */
static bool
date_read_zone_name(struct date *d, const char *word)
{
	const struct zone *zone = date_find_zone(word);

	if (zone == NULL)
		return false;
	if (!d->has_zone)
		d->zone_minutes = zone->minutes;
	/* GMT-0500: the number counts */
	if (d->p + 1 >= d->end || (*d->p != '-' && *d->p != '+') ||
	    !isdigit(d->p[1]))
		d->has_zone = true;
	return true;
}

static void
date_read_word(struct date *d)
{
	const struct month *month;
	char word[WORD_MAX];

	date_take_word(d, word);
	if (strcmp(word, "t") == 0 && d->day != 0 && d->hour < 0)
		return; /* ISO 8601 */
	if (date_read_half(d, word) ||
	    (d->hour >= 0 && date_read_zone_name(d, word)))
		return;
	d->is_month_next = strcmp(word, "tháng") == 0 ||
	    strcmp(word, "thang") == 0 || strcmp(word, "thg") == 0;
	month = bsearch(word, months, LENGTH(months), sizeof(months[0]),
	    date_compare_month);
	/* The first of two was a weekday: "mar. 3 fevr." */
	if (month != NULL && (d->month == 0 || d->is_month_first))
		d->month = month->number;
	if (month != NULL)
		d->is_month_first = d->day == 0;
	else if (d->hour >= 0 && !is_filler(word))
		d->is_zone_unknown = true;
}

/* A comment; that of a zone's name alone counts where no zone stands. */
static void
date_read_comment(struct date *d)
{
	const unsigned char *start = d->p + 1;
	const struct zone *zone;
	char word[WORD_MAX];
	int depth = 0;

	date_take_word(&(struct date){ .p = start, .end = d->end }, word);
	zone = date_find_zone(word);
	if (zone != NULL && d->hour >= 0 && !d->has_zone &&
	    (size_t)(d->end - start) > strlen(word) &&
	    start[strlen(word)] == ')') {
		d->zone_minutes = zone->minutes;
		d->is_zone_unknown = false;
	}
	for (; d->p < d->end; d->p++) {
		if (*d->p == '\\' && d->p + 1 < d->end)
			d->p++;
		else if (*d->p == '(')
			depth++;
		else if (*d->p == ')' && --depth == 0) {
			d->p++;
			return;
		}
	}
}

/* --- numbers ------------------------------------------------------------- */

/* -1: more digits than any number here has. */
static int64_t
date_number(struct date *d, int *digits)
{
	int64_t n = 0;

	for (*digits = 0; d->p < d->end && isdigit(*d->p); d->p++)
		if (++*digits <= 9)
			n = n * 10 + (*d->p - '0');
	return *digits > 9 ? -1 : n;
}

/* At the ':' (or '.', or 'h') behind the hour.  false: no time. */
static bool
date_read_time(struct date *d, int64_t hour)
{
	unsigned char separator = *d->p;
	int digits;

	if (d->hour >= 0 || hour > 23)
		return false;
	d->hour = (int)hour;
	d->p++;
	d->minute = (int)date_number(d, &digits);
	if (digits == 0 || digits > 2 || d->minute > 59)
		return false;
	if (d->p + 1 < d->end && *d->p == separator && isdigit(d->p[1])) {
		d->p++;
		d->second = (int)date_number(d, &digits);
		if (digits > 2 || d->second > 60)
			return false;
	}
	if (d->p + 1 < d->end && (*d->p == '.' || *d->p == ',') &&
	    isdigit(d->p[1])) {
		d->p++;
		date_number(d, &digits);
	}
	return true;
}

/* At a sign behind the time.  false: no zone of this world. */
static bool
date_read_zone(struct date *d)
{
	int sign = *d->p++ == '-' ? -1 : 1, digits, ignored;
	int64_t n = date_number(d, &digits), hours, minutes = 0;

	hours = digits <= 2 ? n : n / 100;
	if (digits > 2)
		minutes = n % 100;
	else if (d->p + 1 < d->end && *d->p == ':' && isdigit(d->p[1])) {
		d->p++;
		minutes = date_number(d, &ignored);
	}
	if (n < 0 || hours > 15 || minutes < 0 || minutes > 59)
		return false;
	d->zone_minutes = sign * (int)(hours * 60 + minutes);
	d->has_zone = true;
	return true;
}

static void
date_set_year(struct date *d, int64_t n, int digits)
{
	d->has_year = true;
	d->year = n;
	if (digits == 2)
		d->year += n < 50 ? 2000 : 1900;
	else if (digits == 3)
		d->year += 1900;
}

/* Digits, a separator and digits again, as the date has no day yet. */
static bool
date_begins_numeric_date(const struct date *d)
{
	return d->month == 0 && d->day == 0 && d->p + 1 < d->end &&
	    strchr("-./", *d->p) != NULL && isdigit(d->p[1]);
}

/* 2026-03-03, 2026/3/3: behind the year. */
static bool
date_read_iso(struct date *d)
{
	unsigned char separator = *d->p++;
	int digits;

	d->month = (int)date_number(d, &digits);
	if (digits > 2 || d->p == d->end || *d->p != separator)
		return false;
	d->p++;
	d->day = (int)date_number(d, &digits);
	return digits >= 1 && digits <= 2 && d->month >= 1 && d->month <= 12;
}

/*
 * 30.11.2026, 30-11-2026, 11/30/2026: behind the first number.  With dots the
 * day is first; otherwise only a number above 12 says which of both it is.
 */
static bool
date_read_day_first(struct date *d, int64_t first)
{
	unsigned char separator = *d->p++;
	int64_t second, year;
	int digits;

	second = date_number(d, &digits);
	if (digits > 2 || d->p == d->end || *d->p != separator)
		return false;
	d->p++;
	year = date_number(d, &digits);
	if (digits != 2 && digits != 4)
		return false;
	date_set_year(d, year, digits);
	if (separator != '.' && first <= 12 && second <= 12 && first != second)
		return false;
	d->day = (int)(separator != '.' && second > 12 ? second : first);
	d->month = (int)(separator != '.' && second > 12 ? first : second);
	return d->month >= 1 && d->month <= 12;
}

/* 20261130: all of it. */
static bool
date_read_compact(struct date *d, int64_t n)
{
	date_set_year(d, n / 10000, 4);
	d->month = (int)(n / 100 % 100);
	d->day = (int)(n % 100);
	return d->month >= 1 && d->month <= 12;
}

/* 2026年11月30日: what a number is, is said behind it. */
static bool
date_read_marked(struct date *d, int64_t n, int digits)
{
	static const char *const marks[] = { "年", "월", "月", "년", "日", "일" };
	size_t i, left = (size_t)(d->end - d->p);

	for (i = 0; i < LENGTH(marks); i++)
		if (left >= 3 && memcmp(d->p, marks[i], 3) == 0)
			break;
	if (i == LENGTH(marks))
		return false;
	d->p += 3;
	if (i == 0 || i == 3)
		date_set_year(d, n, digits);
	else if (i <= 2)
		d->month = n <= 12 ? (int)n : 0;
	else
		d->day = (int)n;
	return true;
}

static bool
is_time(const struct date *d, int digits)
{
	if (digits > 2 || d->p + 1 >= d->end || !isdigit(d->p[1]))
		return digits <= 2 && d->p < d->end && *d->p == ':';
	return *d->p == ':' || (*d->p | 0x20) == 'h' ||
	    (*d->p == '.' && d->month != 0 && d->day != 0 && d->hour < 0);
}

static bool
date_read_number(struct date *d)
{
	int digits;
	int64_t n = date_number(d, &digits);

	if (n < 0)
		return false;
	if (date_read_marked(d, n, digits))
		return true;
	if (is_time(d, digits))
		return date_read_time(d, n);
	if (date_begins_numeric_date(d) && digits == 4) {
		date_set_year(d, n, digits);
		return date_read_iso(d);
	}
	if (date_begins_numeric_date(d) && digits <= 2)
		return date_read_day_first(d, n);
	if (digits == 8 && d->month == 0 && !d->has_year)
		return date_read_compact(d, n);
	if (digits == 6 && d->day != 0 && d->hour < 0 && d->has_year) {
		d->hour = (int)(n / 10000);
		d->minute = (int)(n / 100 % 100);
		d->second = (int)(n % 100);
		return d->hour <= 23 && d->minute <= 59 && d->second <= 60;
	}
	if (d->is_month_next && n >= 1 && n <= 12 && d->month == 0) {
		d->month = (int)n;
		return true;
	}
	if (d->day == 0 && digits <= 2) {
		d->day = (int)n;
		return n >= 1;
	}
	if (!d->has_year && digits >= 2 && digits <= 4) {
		date_set_year(d, n, digits);
		return true;
	}
	return d->has_year; /* more numbers mean nothing */
}

/* --- the whole ----------------------------------------------------------- */

static bool
is_leap(int64_t y)
{
	return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
}

/* Days since 1970-01-01 in the Gregorian calendar. */
static int64_t
date_days(int64_t y, int m, int day)
{
	int64_t era, yoe, doy;

	y -= m <= 2;
	era = (y >= 0 ? y : y - 399) / 400;
	yoe = y - era * 400;
	doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static bool
is_possible(const struct date *d)
{
	static const int lengths[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30,
		31, 30, 31 };

	if (d->month == 0 || d->day == 0 || !d->has_year || d->year < 1900 ||
	    d->year > 9999)
		return false;
	return d->day <= lengths[d->month - 1] +
	    (d->month == 2 && is_leap(d->year));
}

static bool
date_read_part(struct date *d)
{
	static const char minus[] = "\xE2\x88\x92"; /* U+2212 */
	bool is_minus = d->end - d->p > 3 && memcmp(d->p, minus, 3) == 0;
	unsigned char next = d->p + 1 < d->end ? d->p[1] : 0;

	if (*d->p == '(')
		date_read_comment(d);
	else if (isdigit(*d->p))
		return date_read_number(d);
	else if (is_minus && d->hour >= 0 && !d->has_zone) {
		d->p += 2;
		if (!isdigit(d->p[1]) || !date_read_zone(d))
			return false;
		d->zone_minutes = -d->zone_minutes;
	} else if (isalpha(*d->p) || *d->p >= 0x80)
		date_read_word(d);
	else if ((*d->p == '+' || *d->p == '-') && d->hour >= 0 &&
	    !d->has_zone && isdigit(next))
		return date_read_zone(d);
	else
		d->p++;
	return true;
}

bool
date_parse(const char *value, size_t len, int64_t *secs_r)
{
	struct date d = { .p = (const unsigned char *)value, .hour = -1 };
	bool ok = true;

	for (d.end = d.p + len; ok && d.p < d.end;)
		ok = date_read_part(&d);
	if (!ok || !is_possible(&d) || (d.is_zone_unknown && !d.has_zone))
		return false;
	if (d.hour < 0)
		d.hour = 0;
	if (d.is_pm && d.hour < 12)
		d.hour += 12;
	else if (d.is_am && d.hour == 12)
		d.hour = 0;
	*secs_r = date_days(d.year, d.month, d.day) * 86400 + d.hour * 3600 +
	    d.minute * 60 + d.second - (int64_t)d.zone_minutes * 60;
	return true;
}
