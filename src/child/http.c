/*
 * http.c - one request for the metrics, read strictly (RFC 9112).
 *
 * Runs in: metrics children.  Pure.
 *
 * GET or HEAD, without a body, and the connection ends with the answer.  What
 * could be read in two ways is refused and not guessed at: two lengths or
 * hosts, a transfer coding, a bare CR or LF, blanks where none belong, control
 * characters, a continued line.
 */
#include "child/http.h"

#include <ctype.h>
#include <strings.h>

#define TOKEN_CHARS "!#$%&'*+-.^_`|~0123456789"               \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define HOST_CHARS "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"     \
	"abcdefghijklmnopqrstuvwxyz-._~%!$&'()*+,;=:[]"
/* Seen, but not what is at the place. */
#define BAD 400

/* A part of the request: from `at` up to `end`. */
struct span {
	const char *at, *end;
};

struct head {
	int minor; /* HTTP/1.minor */
	unsigned n_hosts, n_lengths;
	bool has_body;
};

const char *
http_reason(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 413:
		return "Content Too Large";
	case 414:
		return "URI Too Long";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	default:
		return "Bad Request";
	}
}

static size_t
span_len(const struct span *span)
{
	return (size_t)(span->end - span->at);
}

static bool
span_is(const struct span *span, const char *text)
{
	return span_len(span) == strlen(text) &&
	    strncasecmp(span->at, text, strlen(text)) == 0;
}

/* As many as are of these characters are taken from its beginning. */
static struct span
span_take(struct span *from, const char *chars)
{
	struct span taken = { from->at, from->at };

	while (taken.end < from->end && *taken.end != '\0' &&
	    strchr(chars, *taken.end) != NULL)
		taken.end++;
	from->at = taken.end;
	return taken;
}

static bool
span_skip(struct span *from, const char *text)
{
	size_t len = strlen(text);

	if (span_len(from) < len || strncmp(from->at, text, len) != 0)
		return false;
	from->at += len;
	return true;
}

/* Lines end in CR LF and hold no other control character but tabs. */
static bool
is_clean(const char *bytes, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (bytes[i] == '\t')
			continue;
		if (bytes[i] == '\r' && (i + 1 == len || bytes[i + 1] == '\n'))
			continue;
		if (bytes[i] == '\n' && i > 0 && bytes[i - 1] == '\r')
			continue;
		if (iscntrl((unsigned char)bytes[i]))
			return false;
	}
	return true;
}

/* Length with the empty line at its end; 0: it is not there yet. */
static size_t
head_length(const char *bytes, size_t len)
{
	size_t i;

	for (i = 3; i < len; i++)
		if (memcmp(bytes + i - 3, "\r\n\r\n", 4) == 0)
			return i + 1;
	return 0;
}

static struct span
http_take_line(struct span *from)
{
	struct span line = { from->at, from->at };

	while (*line.end != '\r')
		line.end++;
	from->at = line.end + 2;
	return line;
}

/* --- the first line ----------------------------------------------------- */

static int
read_target(struct span target, struct http_request *request)
{
	struct span rest = target;
	size_t len;

	/* absolute form: who we are is not in question */
	if (span_skip(&rest, "http://")) {
		if (span_len(&(struct span){ rest.at,
			span_take(&rest, HOST_CHARS).end }) == 0)
			return BAD;
		target = rest;
	}
	if (span_len(&target) == 0 || target.at[0] != '/' ||
	    memchr(target.at, '#', span_len(&target)) != NULL)
		return BAD;
	for (len = 0; len < span_len(&target) && target.at[len] != '?'; len++)
		;
	if (len >= sizeof(request->path))
		return 414;
	memcpy(request->path, target.at, len);
	request->path[len] = '\0';
	return 200;
}

static int
read_request_line(struct span line, struct http_request *request,
    struct head *head, bool *is_ours)
{
	struct span method = span_take(&line, TOKEN_CHARS), target;
	int status;

	if (span_len(&method) == 0 || !span_skip(&line, " "))
		return BAD;
	for (target = line; line.at < line.end && *line.at > ' ' &&
	    *line.at < 0x7f; line.at++)
		;
	target.end = line.at;
	if (span_skip(&line, " HTTP/1.1"))
		head->minor = 1;
	else if (!span_skip(&line, " HTTP/1.0"))
		return BAD;
	if (span_len(&line) != 0)
		return BAD;
	/* Names of methods are of upper case. */
	request->is_head = span_len(&method) == 4 &&
	    memcmp(method.at, "HEAD", 4) == 0;
	*is_ours = request->is_head || (span_len(&method) == 3 &&
	    memcmp(method.at, "GET", 3) == 0);
	status = read_target(target, request);
	/* "*" and the like belong to other methods. */
	return status == BAD && !*is_ours ? 405 : status;
}

/* --- the other lines ---------------------------------------------------- */

static int
read_host(struct head *head, struct span value)
{
	span_take(&value, HOST_CHARS);
	return ++head->n_hosts > 1 || span_len(&value) != 0 ? BAD : 200;
}

static int
read_length(struct head *head, struct span value)
{
	struct span digits = span_take(&value, "0123456789");

	if (++head->n_lengths > 1 || span_len(&digits) == 0 ||
	    span_len(&digits) > 18 || span_len(&value) != 0)
		return BAD;
	span_take(&digits, "0");
	head->has_body = span_len(&digits) != 0;
	return 200;
}

/* Nobody who asks for metrics sends a body, and none is read. */
static int
read_coding(struct head *head, struct span value)
{
	(void)head, (void)value;
	return BAD;
}

static const struct {
	const char *name;
	int (*read)(struct head *head, struct span value);
} fields[] = {
	{ "host", read_host },
	{ "content-length", read_length },
	{ "transfer-encoding", read_coding },
};

static int
read_field(struct span line, struct head *head)
{
	struct span name = span_take(&line, TOKEN_CHARS);
	size_t i;

	/* also of a line that goes on from the one before */
	if (span_len(&name) == 0 || !span_skip(&line, ":"))
		return BAD;
	span_take(&line, " \t");
	while (line.end > line.at &&
	    (line.end[-1] == ' ' || line.end[-1] == '\t'))
		line.end--;
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (span_is(&name, fields[i].name))
			return fields[i].read(head, line);
	return 200;
}

int
http_parse(const char *bytes, size_t len, struct http_request *request_r)
{
	size_t n = head_length(bytes, len);
	struct span rest = { bytes, bytes + n };
	struct head head = { .minor = 0 };
	bool is_ours = false;
	int status;

	if (!is_clean(bytes, n > 0 ? n : len))
		return BAD;
	if (n == 0)
		return len < HTTP_HEAD_MAX ? 0 : 431;
	status = read_request_line(
	    http_take_line(&rest), request_r, &head, &is_ours);
	if (status != 200)
		return status;
	while (span_len(&rest) > 2)
		if ((status = read_field(http_take_line(&rest), &head)) != 200)
			return status;
	if (head.minor == 1 && head.n_hosts == 0)
		return BAD;
	if (!is_ours)
		return 405;
	return head.has_body ? 413 : 200;
}
