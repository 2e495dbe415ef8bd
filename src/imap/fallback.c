/*
 * fallback.c - the libetpan extension for what no other parser knows.
 *
 * Runs in: hot, pool and job children; registered in the parent.  Blocks as
 * the wire does when a literal must be read.
 *
 * sanitize.c already leaves unknown things out; this is the second net under the
 * parser, for a line whose beginning looked right: instead of a parse error,
 * after which libetpan would answer every command with the reply of the one
 * before, the line is swallowed.
 */
#include "imap/fallback.h"

#include "base/xmem.h"

#include <stdint.h>
#include <strings.h>

#define ITEM_MAX ((size_t)300) /* of its text is kept */

static int fallback_parse(int caller, mailstream *stream, MMAPString *buffer,
    struct mailimap_parser_context *context, size_t *at,
    struct mailimap_extension_data **result, size_t rate,
    progress_function *progress);
static void free_data(struct mailimap_extension_data *data);

static struct mailimap_extension_api api = {
    .ext_name = (char *)(uintptr_t) "catch-all",
    .ext_id = -1,
    .ext_parser = fallback_parse,
    .ext_free = free_data,
};

int
fallback_register(struct err *err)
{
	static bool is_registered;

	if (is_registered)
		return 0;
	if (mailimap_extension_register(&api) != MAILIMAP_NO_ERROR)
		return err_set(err, ERR_CONFIG,
		    "libetpan takes no extension");
	is_registered = true;
	return 0;
}

/* The size of a literal that ends at `end`, or -1. */
static long
literal_before(const MMAPString *buffer, size_t from, size_t end)
{
	const char *s = buffer->str;
	size_t i = end;

	if (end < from + 3 || s[--i] != '}')
		return -1;
	while (i > from && s[i - 1] >= '0' && s[i - 1] <= '9')
		i--;
	if (i == from || s[i - 1] != '{' || end - 1 - i > 9)
		return -1;
	return strtol(s + i, NULL, 10);
}

/*
 * Behind a literal that was not read yet the stream stands in front of its
 * bytes; one that was read has been turned into {0} with its line appended.
 */
static int
read_literal(mailstream *stream, MMAPString *buffer, long size)
{
	char bytes[4096];
	ssize_t n;

	while (size > 0) {
		n = mailstream_read(stream, bytes,
		    size < (long)sizeof(bytes) ? (size_t)size : sizeof(bytes));
		if (n <= 0)
			return -1;
		size -= n;
	}
	return mailstream_read_line_append(stream, buffer) != NULL ? 0 : -1;
}

/* Moves *at to the line end of the reply. */
static int
skip_reply(mailstream *stream, MMAPString *buffer, size_t *at)
{
	size_t from = *at, end, text;
	const char *nl;
	long size;

	for (;;) {
		nl = memchr(buffer->str + from, '\n', buffer->len - from);
		if (nl == NULL)
			return -1;
		end = (size_t)(nl - buffer->str);
		text = end > from && buffer->str[end - 1] == '\r' ? end - 1 :
								    end;
		size = literal_before(buffer, from, text);
		if (size < 0) {
			*at = text;
			return 0;
		}
		from = end + 1;
		if (from == buffer->len &&
		    read_literal(stream, buffer, size) == -1)
			return -1;
	}
}

/* "NAME value" with balanced parentheses and quotes, without literals. */
static int
skip_item(MMAPString *buffer, size_t *at)
{
	const char *s = buffer->str;
	size_t i = *at, depth = 0;
	bool in_quotes = false, has_value = false;

	for (; i < buffer->len && s[i] != '\r' && s[i] != '\n'; i++) {
		if (in_quotes) {
			if (s[i] == '\\' && i + 1 < buffer->len)
				i++;
			else if (s[i] == '"')
				in_quotes = false;
		} else if (s[i] == '"')
			in_quotes = true;
		else if (s[i] == '(')
			depth++;
		else if (s[i] == ')') {
			if (depth == 0)
				break;
			depth--;
		} else if (s[i] == ' ' && depth == 0) {
			if (has_value)
				break;
			has_value = true;
		}
	}
	if (i == *at || depth > 0 || in_quotes)
		return -1;
	*at = i;
	return 0;
}

static int
fallback_parse(int caller, mailstream *stream, MMAPString *buffer,
    struct mailimap_parser_context *context, size_t *at,
    struct mailimap_extension_data **result, size_t rate,
    progress_function *progress)
{
	size_t to = *at;
	int r;

	(void)context;
	(void)rate;
	(void)progress;
	switch (caller) {
	case MAILIMAP_EXTENDED_PARSER_RESPONSE_DATA:
		r = skip_reply(stream, buffer, &to);
		break;
	case MAILIMAP_EXTENDED_PARSER_FETCH_DATA:
	case MAILIMAP_EXTENDED_PARSER_STATUS_ATT:
		r = skip_item(buffer, &to);
		break;
	default:
		return MAILIMAP_ERROR_PARSE;
	}
	if (r == -1)
		return MAILIMAP_ERROR_PARSE;
	*result = mailimap_extension_data_new(&api, caller,
	    xstrndup(buffer->str + *at, to - *at < ITEM_MAX ? to - *at :
							      ITEM_MAX));
	if (*result == NULL)
		return MAILIMAP_ERROR_MEMORY;
	*at = to;
	return MAILIMAP_NO_ERROR;
}

bool
fallback_is_fetch(const struct mailimap_extension_data *data)
{
	const char *text = data->ext_data;

	if (data->ext_extension != &api ||
	    data->ext_type != MAILIMAP_EXTENDED_PARSER_RESPONSE_DATA)
		return false;
	text += strspn(text, "0123456789");
	return strncasecmp(text, " FETCH", 6) == 0;
}

const char *
fallback_status_item(const struct mailimap_extension_data *data)
{
	return data->ext_extension == &api &&
		data->ext_type == MAILIMAP_EXTENDED_PARSER_STATUS_ATT ?
	    data->ext_data : NULL;
}

static void
free_data(struct mailimap_extension_data *data)
{
	free(data->ext_data);
	free(data);
}
