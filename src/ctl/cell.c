/*
 * cell.c - one value of a table, for people and as JSON.
 *
 * Runs in: mailherdctl.
 */
#include "ctl/table.h"

#include "base/clock.h"

#include <bsd/stdlib.h>
#include <inttypes.h>

static bool
is_true(const char *cell)
{
	return strcmp(cell, "t") == 0 || strcmp(cell, "true") == 0;
}

static bool
parse_int(const char *cell, int64_t *n_r)
{
	char *end;
	long long n;

	n = strtoll(cell, &end, 10);
	if (end == cell || (*end != '\0' && *end != '.'))
		return false;
	*n_r = n;
	return true;
}

const char *
format_size(char *out, size_t size, uint64_t bytes)
{
	static const char *const units[] = { "KB", "MB", "GB", "TB", "PB" };
	double n = (double)bytes;
	size_t unit = 0;

	if (bytes < 1000) {
		snprintf(out, size, "%" PRIu64 " B", bytes);
		return out;
	}
	for (n /= 1024; n >= 999.5 && unit + 1 < 5; n /= 1024)
		unit++;
	snprintf(out, size, n < 9.95 ? "%.1f %s" : "%.0f %s", n, units[unit]);
	return out;
}

const char *
format_time(char *out, size_t size, int64_t secs, int64_t now)
{
	const int64_t half_year = 182 * 86400;
	time_t t = secs;
	struct tm tm;

	if (localtime_r(&t, &tm) == NULL) {
		snprintf(out, size, "%" PRId64, secs);
		return out;
	}
	if (secs < now - half_year || secs > now + half_year)
		strftime(out, size, "%b %e  %Y", &tm);
	else
		strftime(out, size, "%b %e %H:%M", &tm);
	return out;
}

const char *
format_count(char *out, size_t size, uint64_t n)
{
	char digits[24];
	size_t len, used = 0;

	snprintf(digits, sizeof(digits), "%" PRIu64, n);
	len = strlen(digits);
	for (size_t i = 0; i < len && used + 2 < size; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			out[used++] = ',';
		out[used++] = digits[i];
	}
	out[used] = '\0';
	return out;
}

static void
add_age(struct buf *out, int64_t secs, int64_t now)
{
	char span[32];

	if (secs <= now) {
		clock_format_span(span, sizeof(span), now - secs);
		buf_addf(out, "%s ago", span);
	} else {
		clock_format_span(span, sizeof(span), secs - now);
		buf_addf(out, "in %s", span);
	}
}

void
cell_human(struct buf *out, enum column_type type, const char *cell,
    int64_t now)
{
	char text[64];
	int64_t n = 0;
	bool is_int;

	if (cell == NULL) {
		buf_addc(out, '-');
		return;
	}
	is_int = parse_int(cell, &n);
	if (type == COLUMN_BOOL)
		buf_adds(out, is_true(cell) ? "yes" : "no");
	else if (type == COLUMN_SIZE && is_int && n >= 0)
		buf_adds(out, format_size(text, sizeof(text), (uint64_t)n));
	else if (type == COLUMN_TIME && is_int)
		buf_adds(out, format_time(text, sizeof(text), n, now));
	else if (type == COLUMN_AGE && is_int)
		add_age(out, n, now);
	else if (type == COLUMN_SPAN && is_int && n >= 0)
		buf_adds(out, clock_format_span(text, sizeof(text), n));
	else
		display_clean(out, cell);
}

static json_t *
cell_text_json(const char *cell)
{
	json_t *value = json_string(cell);
	struct buf clean = BUF_INIT;

	if (value != NULL)
		return value;
	/* Not UTF-8: JSON has no other way to say it. */
	display_clean(&clean, cell);
	value = json_string(buf_str(&clean));
	buf_release(&clean);
	return value;
}

static json_t *
number_json(const char *cell)
{
	json_t *value = json_loads(cell, JSON_DECODE_ANY, NULL);

	if (json_is_number(value))
		return value;
	json_decref(value);
	return cell_text_json(cell);
}

static json_t *
words_json(const char *cell)
{
	json_t *array = json_array();

	for (const char *p = cell; *p != '\0';) {
		size_t len = strcspn(p, " ");

		if (len > 0)
			json_array_append_new(array, json_stringn(p, len));
		p += len;
		p += strspn(p, " ");
	}
	return array;
}

json_t *
cell_json(enum column_type type, const char *cell)
{
	char text[64];
	json_t *value;
	int64_t n;

	if (cell == NULL)
		return json_null();
	switch (type) {
	case COLUMN_NUMBER:
	case COLUMN_SIZE:
	case COLUMN_SPAN:
		return number_json(cell);
	case COLUMN_BOOL:
		return json_boolean(is_true(cell));
	case COLUMN_TIME:
	case COLUMN_AGE:
		if (!parse_int(cell, &n))
			return cell_text_json(cell);
		return json_string(clock_format_utc(text, sizeof(text), n));
	case COLUMN_JSON:
		value = json_loads(cell, JSON_DECODE_ANY, NULL);
		return value != NULL ? value : cell_text_json(cell);
	case COLUMN_WORDS:
		return words_json(cell);
	case COLUMN_TEXT:
		break;
	}
	return cell_text_json(cell);
}
