/*
 * date.c - the Date header, as mailers really write it.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * The words are taken as they come: a name of a month, a time with colons, a
 * zone with a sign, then numbers in the order day, year.  So RFC 5322, its
 * obsolete forms, asctime and most inventions are one case; what is left
 * incomplete is no date.  Weekdays and comments are ignored.
 */
#include "mime/date.h"

#include <ctype.h>

struct date {
	const unsigned char *p, *end;
	int64_t year;
	int month, day;		   /* 0: not seen yet */
	int hour, minute, second;  /* hour -1: not seen yet */
	int zone_minutes;
	bool has_zone, has_year, is_pm, is_am;
};

static const char months[12][4] = { "jan", "feb", "mar", "apr", "may", "jun",
	"jul", "aug", "sep", "oct", "nov", "dec" };

static const struct {
	const char *name;
	int hours;
} zones[] = {
	{ "UT", 0 }, { "UTC", 0 }, { "GMT", 0 }, { "Z", 0 },
	{ "EST", -5 }, { "EDT", -4 }, { "CST", -6 }, { "CDT", -5 },
	{ "MST", -7 }, { "MDT", -6 }, { "PST", -8 }, { "PDT", -7 },
	{ "WET", 0 }, { "WEST", 1 }, { "BST", 1 }, { "CET", 1 },
	{ "MET", 1 }, { "CEST", 2 }, { "MEST", 2 }, { "EET", 2 },
	{ "EEST", 3 }, { "MSK", 3 }, { "JST", 9 }, { "KST", 9 },
	{ "AEST", 10 }, { "AEDT", 11 }, { "NZST", 12 }, { "NZDT", 13 },
};

static void
skip_comment(struct date *d)
{
	int depth = 0;

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

/* -1: more digits than any number here has. */
static int64_t
number(struct date *d, int *digits)
{
	int64_t n = 0;

	for (*digits = 0; d->p < d->end && isdigit(*d->p); d->p++)
		if (++*digits <= 9)
			n = n * 10 + (*d->p - '0');
	return *digits > 9 ? -1 : n;
}

/* Behind the hour.  false: no time. */
static bool
read_time(struct date *d, int64_t hour)
{
	int digits;

	if (d->hour >= 0 || hour > 23)
		return false;
	d->hour = (int)hour;
	d->p++; /* ':' */
	d->minute = (int)number(d, &digits);
	if (digits == 0 || digits > 2 || d->minute > 59)
		return false;
	if (d->p + 1 < d->end && *d->p == ':' && isdigit(d->p[1])) {
		d->p++;
		d->second = (int)number(d, &digits);
		if (digits > 2 || d->second > 60)
			return false;
	}
	if (d->p + 1 < d->end && *d->p == '.' && isdigit(d->p[1])) {
		d->p++;
		number(d, &digits);
	}
	return true;
}

/* At a sign behind the time. */
static void
read_zone(struct date *d)
{
	int sign = *d->p++ == '-' ? -1 : 1, digits, ignored;
	int64_t n = number(d, &digits), hours, minutes = 0;

	if (digits == 0 || n < 0)
		return;
	hours = digits <= 2 ? n : n / 100;
	if (digits > 2)
		minutes = n % 100;
	else if (d->p + 1 < d->end && *d->p == ':' && isdigit(d->p[1])) {
		d->p++;
		minutes = number(d, &ignored);
	}
	if (hours > 23 || minutes < 0 || minutes > 59)
		return;
	d->zone_minutes = sign * (int)(hours * 60 + minutes);
	d->has_zone = true;
}

static bool
read_word(struct date *d)
{
	const unsigned char *w = d->p;
	size_t len, i;

	while (d->p < d->end && (isalpha(*d->p) || *d->p >= 0x80))
		d->p++;
	len = (size_t)(d->p - w);
	if (len == 1 && *w == 'T' && d->day != 0 && d->hour < 0)
		return true; /* ISO 8601 */
	if (d->hour >= 0) {
		for (i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
			if (strlen(zones[i].name) != len ||
			    strncasecmp(zones[i].name, (const char *)w, len))
				continue;
			if (!d->has_zone)
				d->zone_minutes = zones[i].hours * 60;
			/* GMT-0500: the number counts */
			if (d->p + 1 < d->end &&
			    (*d->p == '-' || *d->p == '+') &&
			    isdigit(d->p[1]))
				return true;
			d->has_zone = true;
			return true;
		}
		d->is_pm |= len == 2 && strncasecmp((const char *)w, "pm", 2)
		    == 0;
		d->is_am |= len == 2 && strncasecmp((const char *)w, "am", 2)
		    == 0;
	}
	for (i = 0; i < 12 && len >= 3 && d->month == 0; i++)
		if (strncasecmp(months[i], (const char *)w, 3) == 0)
			d->month = (int)i + 1;
	return true;
}

static void
set_year(struct date *d, int64_t n, int digits)
{
	d->has_year = true;
	d->year = n;
	if (digits == 2)
		d->year += n < 50 ? 2000 : 1900;
	else if (digits == 3)
		d->year += 1900;
}

/* 2026-03-03: behind the year. */
static bool
read_iso(struct date *d)
{
	int digits;

	d->p++;
	d->month = (int)number(d, &digits);
	if (digits != 2 || d->p == d->end || *d->p != '-')
		return false;
	d->p++;
	d->day = (int)number(d, &digits);
	return digits == 2 && d->month >= 1 && d->month <= 12;
}

static bool
read_number(struct date *d)
{
	int digits;
	int64_t n = number(d, &digits);

	if (n < 0)
		return false;
	if (d->p < d->end && *d->p == ':' && digits <= 2)
		return read_time(d, n);
	if (digits == 4 && d->month == 0 && d->day == 0 && d->p + 1 < d->end &&
	    *d->p == '-' && isdigit(d->p[1])) {
		set_year(d, n, digits);
		return read_iso(d);
	}
	if (d->day == 0 && digits <= 2) {
		d->day = (int)n;
		return n >= 1;
	}
	if (!d->has_year && digits >= 2 && digits <= 4) {
		set_year(d, n, digits);
		return true;
	}
	return d->has_year; /* more numbers mean nothing */
}

static bool
is_leap(int64_t y)
{
	return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
}

/* Days since 1970-01-01 in the Gregorian calendar. */
static int64_t
days(int64_t y, int m, int day)
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

bool
date_parse(const char *value, size_t len, int64_t *secs_r)
{
	struct date d = { .p = (const unsigned char *)value, .hour = -1 };
	bool ok = true;

	for (d.end = d.p + len; ok && d.p < d.end;) {
		if (*d.p == '(')
			skip_comment(&d);
		else if (isdigit(*d.p))
			ok = read_number(&d);
		else if (isalpha(*d.p) || *d.p >= 0x80)
			ok = read_word(&d);
		else if ((*d.p == '+' || *d.p == '-') && d.hour >= 0 &&
		    !d.has_zone && d.p + 1 < d.end && isdigit(d.p[1]))
			read_zone(&d);
		else
			d.p++;
	}
	if (!ok || !is_possible(&d))
		return false;
	if (d.hour < 0)
		d.hour = 0;
	if (d.is_pm && d.hour < 12)
		d.hour += 12;
	else if (d.is_am && d.hour == 12)
		d.hour = 0;
	*secs_r = days(d.year, d.month, d.day) * 86400 + d.hour * 3600 +
	    d.minute * 60 + d.second - (int64_t)d.zone_minutes * 60;
	return true;
}
