/*
 * input.c - what the server says, in lines and literals, sanitized.
 *
 * Runs in: hot, pool and job children.  Blocks where it reads for the parser.
 *
 * raw holds bytes as they came; a line of it goes through sanitize.c into `out`,
 * which the parser then reads; the bytes of a literal go straight from raw, or
 * from the socket, into the parser's buffer.  Nothing but complete lines is
 * ever shown to the parser, so it never waits in the middle of one.
 */
#include "imap/stream_private.h"

#include "base/xmem.h"
#include "imap/words.h"

#define RAW_SIZE ((size_t)16384) /* one TLS record */
/* What libetpan and we make of a line, beside its text. */
#define LINE_COST 300
#define VANISHED_FACTOR 16 /* the one line that may be long by right */

/* "* 5 FETCH (", as sanitize.c writes it. */
static bool
is_fetch(const char *line)
{
	line += 2;
	line += strspn(line, "0123456789");
	return strncmp(line, " FETCH", 6) == 0;
}

/*
 * A whole untagged line that would be more than the reply may leave in memory
 * is not passed on.  Tagged lines always are, and what belongs to a literal.
 */
static void
keep_to_budget(struct stream *w, size_t before)
{
	size_t cost = w->out.len - before + LINE_COST;

	if (!w->has_budget || w->out.len == before || before > 0 ||
	    w->out.data[0] != '*' || w->sanitizer.has_literal)
		return;
	if (w->hands_on_fetch && is_fetch(w->out.data))
		cost -= LINE_COST;
	if (cost <= w->budget_left) {
		w->budget_left -= cost;
		return;
	}
	buf_reset(&w->out);
	w->sanitizer.notes.is_cut = true;
}

/* What is left out anyway, a folder with an endless name say, is read and thrown
 * away as far as the reply may be long. */
static bool
input_can_skip(struct stream *w)
{
	const struct sanitizer *m = &w->sanitizer;

	if (m->reply != REPLY_SKIPPED || m->literal > w->text_left)
		return false;
	w->text_left -= m->literal;
	return true;
}

/* The verdict of sanitize.c, and the literal behind the line. */
static int
input_take_line(struct stream *w, const char *line, size_t len)
{
	size_t before = w->out.len;

	rawlog_in(w->rawlog, line, len);
	if (len > w->text_left) {
		stream_fail(w, ERR_PROTOCOL, "the answer is too long");
		return -1;
	}
	w->text_left -= len;
	switch (sanitize_line(&w->sanitizer, line, len, &w->out)) {
	case SANITIZE_PASS:
		w->is_holding = false;
		keep_to_budget(w, before);
		break;
	case SANITIZE_HOLD:
		w->is_holding = true;
		break;
	case SANITIZE_BYE:
		words_for_bye(w->sanitizer.notes.last_words, w->host, &w->pending);
		return 0;
	case SANITIZE_STRAY:
		words_for_stray(w->sanitizer.notes.last_words, w->host, &w->pending);
		return 0;
	case SANITIZE_TORN:
		stream_fail(w, ERR_PROTOCOL, "a message did not end where its "
		    "announced length said");
		return -1;
	}
	if (!w->sanitizer.has_literal)
		return 0;
	if (w->sanitizer.literal > w->max_literal &&
	    (w->sanitizer.keep_literal || !w->sanitizer.has_body) &&
	    !input_can_skip(w)) {
		stream_fail(w, ERR_PROTOCOL, "a string of %llu bytes was "
		    "announced, more than the %llu allowed",
		    (unsigned long long)w->sanitizer.literal,
		    (unsigned long long)w->max_literal);
		return -1;
	}
	w->literal_left = w->sanitizer.literal;
	w->keep_literal = w->sanitizer.keep_literal;
	return 0;
}

static size_t
line_limit(const struct stream *w, const char *line, size_t len)
{
	static const char vanished[] = "* VANISHED ";
	size_t n = sizeof(vanished) - 1;

	return len >= n && memcmp(line, vanished, n) == 0 ?
	    w->max_line * VANISHED_FACTOR : w->max_line;
}

/*
 * Moves on with what is in raw until there is something to read in `out`, a
 * kept literal begins, or raw is used up.  -1: error set.
 */
static int
input_digest(struct stream *w)
{
	const char *from, *end;
	size_t n;

	while (w->raw_from < w->raw_to && w->pending.kind == ERR_NONE) {
		if (w->out.len > 0 && !w->is_holding)
			return 0;
		n = w->raw_to - w->raw_from;
		if (w->literal_left > 0) {
			if (w->keep_literal)
				return 0;
			if (n > w->literal_left)
				n = (size_t)w->literal_left;
			w->raw_from += n;
			w->literal_left -= n;
			continue;
		}
		from = w->raw + w->raw_from;
		end = memchr(from, '\n', n);
		n = end != NULL ? (size_t)(end - from) + 1 : n;
		w->raw_from += n;
		if (end != NULL && w->line.len == 0) {
			if (input_take_line(w, from, n) == -1)
				return -1;
			continue;
		}
		buf_add(&w->line, from, n);
		if (w->line.len > line_limit(w, w->line.data, w->line.len)) {
			stream_fail(w, ERR_PROTOCOL,
			    "a line of more than %zu bytes", w->max_line);
			return -1;
		}
		if (end != NULL) {
			int r = input_take_line(w, w->line.data, w->line.len);

			if (w->line.cap > 4096)
				buf_release(&w->line);
			else
				buf_reset(&w->line);
			if (r == -1)
				return -1;
		}
	}
	return 0;
}

/* Room in raw; everything of it was used. */
static void
input_make_room(struct stream *w)
{
	if (w->raw == NULL)
		w->raw = xmalloc(RAW_SIZE);
	if (w->raw_from == w->raw_to)
		w->raw_from = w->raw_to = 0;
}

static bool
has_out(const struct stream *w)
{
	return w->out.len > 0 && !w->is_holding;
}

static size_t
copy_out(struct stream *w, char *to, size_t size)
{
	size_t n = w->out.len - w->out_from;

	if (n > size)
		n = size;
	memcpy(to, w->out.data + w->out_from, n);
	w->out_from += n;
	if (w->out_from == w->out.len) {
		w->out_from = 0;
		if (w->out.cap > 4096)
			buf_release(&w->out);
		else
			buf_reset(&w->out);
	}
	return n;
}

static size_t
copy_literal(struct stream *w, char *to, size_t size)
{
	size_t n = w->raw_to - w->raw_from;

	if (n > size)
		n = size;
	if (n > w->literal_left)
		n = (size_t)w->literal_left;
	memcpy(to, w->raw + w->raw_from, n);
	w->raw_from += n;
	w->literal_left -= n;
	return n;
}

/* What can be read without waiting; -1: error. */
static ssize_t
read_ready(struct stream *w, char *to, size_t size)
{
	size_t got = 0, n;

	while (got < size) {
		if (has_out(w))
			n = copy_out(w, to + got, size - got);
		else if (w->literal_left > 0 && w->keep_literal &&
		    w->raw_from < w->raw_to)
			n = copy_literal(w, to + got, size - got);
		else if (w->pending.kind != ERR_NONE ||
		    w->raw_from == w->raw_to)
			break;
		else if (input_digest(w) == -1)
			return got > 0 ? (ssize_t)got : -1;
		else
			n = 0;
		got += n;
	}
	return (ssize_t)got;
}

ssize_t
input_read(mailstream_low *low, void *to, size_t size)
{
	struct stream *w = low->data;
	ssize_t n;

	for (;;) {
		if (w->error.kind != ERR_NONE || size == 0)
			return -1;
		if ((n = read_ready(w, to, size)) != 0)
			return n;
		if (w->pending.kind != ERR_NONE) {
			w->error = w->pending;
			rawlog_note(w->rawlog, "%s", w->error.text);
			return -1;
		}
		/* A big literal goes past raw. */
		if (w->literal_left > 0 && w->keep_literal && size >= 4096) {
			if (size > w->literal_left)
				size = (size_t)w->literal_left;
			if ((n = stream_receive(w, to, size)) > 0)
				w->literal_left -= (uint64_t)n;
			return n;
		}
		input_make_room(w);
		if ((n = stream_receive(w, w->raw + w->raw_to,
			 RAW_SIZE - w->raw_to)) < 0)
			return -1;
		w->raw_to += (size_t)n;
	}
}

int
stream_feed(struct stream *w)
{
	ssize_t n;

	if (w->error.kind != ERR_NONE)
		return -1;
	input_make_room(w);
	if (w->raw_to == RAW_SIZE)
		return input_digest(w); /* read first */
	n = stream_receive_some(w, w->raw + w->raw_to, RAW_SIZE - w->raw_to);
	if (n > 0)
		w->raw_to += (size_t)n;
	else if (n < 0)
		return -1;
	return input_digest(w);
}

bool
stream_has_line(struct stream *w)
{
	if (w->error.kind == ERR_NONE)
		input_digest(w);
	return has_out(w) || w->pending.kind != ERR_NONE ||
	    w->error.kind != ERR_NONE;
}

bool
stream_is_drained(const struct stream *w)
{
	return w->raw_from == w->raw_to && w->out.len == 0 &&
	    w->line.len == 0 && w->literal_left == 0 &&
	    (w->tls == NULL || gnutls_record_check_pending(w->tls) == 0);
}

void
stream_slim(struct stream *w)
{
	if (w->raw != NULL && w->raw_from == w->raw_to) {
		free(w->raw);
		w->raw = NULL;
		w->raw_from = w->raw_to = 0;
	}
	if (w->out.len == 0)
		buf_release(&w->out);
	if (w->line.len == 0)
		buf_release(&w->line);
}
