/*
 * err.c - descriptions of failures.
 *
 * Runs in: every process.  Never blocks.
 */
#include "base/err.h"

#include "base/text.h"

#include <stdarg.h>

static const char *const kind_names[ERR_KIND_COUNT] = {
#define X(symbol, name) [symbol] = name,
	ERR_KINDS(X)
#undef X
};

int
err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	char raw[sizeof(err->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	err->kind = kind;
	err->retry_after_secs = 0;
	err->is_limit = 0;
	text_clean_line(err->text, sizeof(err->text), raw, strlen(raw));
	return -1;
}

int
err_prefix(struct err *err, const char *fmt, ...)
{
	char raw[2 * sizeof(err->text)];
	size_t used;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(raw, sizeof(err->text), fmt, ap);
	va_end(ap);
	used = strlen(raw);
	snprintf(raw + used, sizeof(raw) - used, ": %s", err->text);
	text_clean_line(err->text, sizeof(err->text), raw, strlen(raw));
	return -1;
}

const char *
err_kind_name(enum err_kind kind)
{
	if ((unsigned)kind >= ERR_KIND_COUNT)
		return "unknown";
	return kind_names[kind];
}
