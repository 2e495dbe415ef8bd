/*
 * wire.c - the bytes between libetpan and the server.
 *
 * Runs in: hot, pool and job children.  Blocks in poll(2), within a deadline.
 *
 * raw holds bytes as they came; a line of it goes through mend into `out`,
 * which the parser then reads; the bytes of a literal go straight from raw, or
 * from the socket, into the parser's buffer.  Nothing but complete lines is
 * ever shown to the parser, so it never waits in the middle of one.
 */
#include "remote/wire.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "remote/tls.h"
#include "remote/words.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#define RAW_SIZE ((size_t)16384) /* one TLS record */
#define SLICE_MSECS 1000
#define VANISHED_FACTOR 16 /* the one line that may be long by right */

struct wire {
	int fd;
	gnutls_session_t tls;
	mailstream_low low; /* what libetpan knows of us */
	char host[256];
	struct rawlog *rawlog;
	int (*may_go_on)(void *arg, struct err *err);
	void *arg;

	char *raw; /* RAW_SIZE bytes, NULL while slim */
	size_t raw_from, raw_to;
	struct buf line; /* the beginning of a line whose end is not here yet */
	struct mend mend;
	struct buf out; /* mended, to be read */
	size_t out_from;
	bool is_holding;      /* `out` waits for the rest of the reply */
	uint64_t literal_left;
	bool keep_literal;
	struct err pending;   /* becomes `error` when `out` has been read */

	size_t max_line;
	uint64_t max_literal, text_left;
	int64_t deadline_mono_msecs;
	int64_t stall_msecs; /* 0: the deadline is absolute */
	int64_t waited_msecs; /* since rate_bytes was 0 */
	uint64_t rate_bytes;

	struct err error;
	struct wire_counts counts;
	bool is_answer_due; /* something was sent since the last wait */
};

static ssize_t on_read(mailstream_low *low, void *to, size_t size);
static ssize_t on_write(mailstream_low *low, const void *bytes, size_t size);
static int on_close(mailstream_low *low);
static int on_get_fd(mailstream_low *low);
static void on_free(mailstream_low *low);
static void on_cancel(mailstream_low *low);

static mailstream_low_driver driver = {
	.mailstream_read = on_read,
	.mailstream_write = on_write,
	.mailstream_close = on_close,
	.mailstream_get_fd = on_get_fd,
	.mailstream_free = on_free,
	.mailstream_cancel = on_cancel,
};

struct wire *
wire_new(const struct wire_params *params)
{
	struct wire *w = xcalloc(1, sizeof(*w));

	w->fd = params->fd;
	snprintf(w->host, sizeof(w->host), "%s", params->host);
	w->max_line = params->max_line;
	w->rawlog = params->rawlog;
	w->may_go_on = params->may_go_on;
	w->arg = params->arg;
	w->low.data = w;
	w->low.driver = &driver;
	w->low.privacy = 1;
	mend_init(&w->mend);
	wire_set_limits(w, 65536, 1 << 20);
	return w;
}

void
wire_free(struct wire **w)
{
	struct wire *gone = *w;

	if (gone == NULL)
		return;
	if (gone->tls != NULL)
		gnutls_deinit(gone->tls);
	if (gone->fd != -1)
		close(gone->fd);
	free(gone->raw);
	buf_release(&gone->line);
	buf_release(&gone->out);
	mend_release(&gone->mend);
	rawlog_close(&gone->rawlog);
	free(gone);
	*w = NULL;
}

mailstream_low *
wire_low(struct wire *w)
{
	return &w->low;
}

int
wire_fd(const struct wire *w)
{
	return w->fd;
}

bool
wire_is_tls(const struct wire *w)
{
	return w->tls != NULL;
}

struct mend_notes *
wire_notes(struct wire *w)
{
	return &w->mend.notes;
}

struct rawlog *
wire_rawlog(struct wire *w)
{
	return w->rawlog;
}

const struct err *
wire_error(const struct wire *w)
{
	return &w->error;
}

const struct wire_counts *
wire_counts(const struct wire *w)
{
	return &w->counts;
}

void
wire_fail(struct wire *w, enum err_kind kind, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	if (w->error.kind != ERR_NONE)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(&w->error, kind, "%s: %s", w->host, text);
	rawlog_note(w->rawlog, "%s", w->error.text);
}

/* --- patience ------------------------------------------------------------ */

void
wire_set_deadline(struct wire *w, int64_t msecs)
{
	w->deadline_mono_msecs = clock_mono_msecs() + msecs;
	w->stall_msecs = 0;
}

void
wire_set_stall(struct wire *w, int64_t msecs)
{
	wire_set_deadline(w, msecs);
	w->stall_msecs = msecs;
	w->waited_msecs = 0;
	w->rate_bytes = 0;
}

void
wire_set_limits(struct wire *w, uint64_t max_literal, uint64_t max_text)
{
	w->max_literal = max_literal;
	w->text_left = max_text;
}

/* 0 or -1 with w->error set. */
static int
look_at_clock(struct wire *w, int64_t now)
{
	int64_t window;

	if (w->stall_msecs == 0) {
		if (now < w->deadline_mono_msecs)
			return 0;
		wire_fail(w, ERR_DEADLINE, "no complete answer in time");
		return -1;
	}
	window = w->stall_msecs < WIRE_RATE_MSECS / 2 ? 2 * w->stall_msecs :
							WIRE_RATE_MSECS;
	if (w->waited_msecs < window)
		return 0;
	if ((int64_t)w->rate_bytes < w->waited_msecs * WIRE_MIN_RATE / 1000) {
		wire_fail(w, ERR_DEADLINE,
		    "only %llu bytes in %lld ms of waiting",
		    (unsigned long long)w->rate_bytes,
		    (long long)w->waited_msecs);
		return -1;
	}
	w->waited_msecs = 0;
	w->rate_bytes = 0;
	return 0;
}

static void
note_arrival(struct wire *w, size_t n)
{
	w->counts.bytes_in += n;
	w->rate_bytes += n;
	if (w->is_answer_due) {
		w->counts.round_trips++;
		w->is_answer_due = false;
	}
	if (w->stall_msecs > 0)
		w->deadline_mono_msecs = clock_mono_msecs() + w->stall_msecs;
}

static int
wait_ready(struct wire *w, short events)
{
	struct pollfd p = { .fd = w->fd, .events = events };
	int64_t start = clock_mono_msecs(), now = start, left;
	struct err err = ERR_INIT;
	int r;

	for (;;) {
		left = w->deadline_mono_msecs - now;
		if (left <= 0) {
			wire_fail(w, ERR_DEADLINE, "no answer in time");
			return -1;
		}
		r = poll(&p, 1, (int)(left < SLICE_MSECS ? left : SLICE_MSECS));
		now = clock_mono_msecs();
		if (r > 0) {
			w->waited_msecs += now - start;
			return 0;
		}
		if (r == -1 && errno != EINTR) {
			wire_fail(w, ERR_NETWORK, "poll: %s", strerror(errno));
			return -1;
		}
		if (w->may_go_on != NULL && w->may_go_on(w->arg, &err) == -1) {
			if (w->error.kind == ERR_NONE)
				w->error = err;
			return -1;
		}
	}
}

/* --- the socket ---------------------------------------------------------- */

static void
fail_stream(struct wire *w, const char *what, int code)
{
	if (w->tls == NULL)
		wire_fail(w, ERR_NETWORK, "%s: %s", what, strerror(code));
	else if (code == GNUTLS_E_PREMATURE_TERMINATION ||
	    code == GNUTLS_E_PULL_ERROR || code == GNUTLS_E_PUSH_ERROR)
		wire_fail(w, ERR_NETWORK, "%s: connection lost", what);
	else
		wire_fail(w, ERR_TLS, "%s: %s", what, gnutls_strerror(code));
}

/* Bytes read, 0: nothing there, -1: error set.  EOF is an error. */
static ssize_t
receive_some(struct wire *w, void *to, size_t size)
{
	ssize_t n;
	int code;

	do {
		if (w->tls != NULL) {
			n = gnutls_record_recv(w->tls, to, size);
			code = (int)n;
			if (n == GNUTLS_E_AGAIN)
				return 0;
			/* A renegotiation or a warning: go on. */
			if (n == GNUTLS_E_REHANDSHAKE ||
			    n == GNUTLS_E_WARNING_ALERT_RECEIVED)
				n = GNUTLS_E_INTERRUPTED;
		} else {
			n = recv(w->fd, to, size, 0);
			code = errno;
			if (n == -1 && (code == EAGAIN || code == EWOULDBLOCK))
				return 0;
			if (n == -1 && code == EINTR)
				n = GNUTLS_E_INTERRUPTED;
		}
	} while (n == GNUTLS_E_INTERRUPTED);
	if (n == 0)
		wire_fail(w, ERR_NETWORK, "server closed the connection");
	else if (n < 0)
		fail_stream(w, "read", code);
	if (n <= 0)
		return -1;
	note_arrival(w, (size_t)n);
	return n;
}

/* At least one byte, or -1. */
static ssize_t
receive(struct wire *w, void *to, size_t size)
{
	ssize_t n;

	for (;;) {
		if (w->error.kind != ERR_NONE ||
		    look_at_clock(w, clock_mono_msecs()) == -1)
			return -1;
		if ((n = receive_some(w, to, size)) != 0)
			return n;
		if (wait_ready(w, POLLIN) == -1)
			return -1;
	}
}

int
wire_send(struct wire *w, const char *bytes, size_t len, bool is_secret)
{
	ssize_t n;

	rawlog_out(w->rawlog, bytes, len, is_secret);
	while (len > 0) {
		if (w->error.kind != ERR_NONE)
			return -1;
		if (w->tls != NULL) {
			n = gnutls_record_send(w->tls, bytes, len);
			if (n == GNUTLS_E_INTERRUPTED)
				continue;
			if (n < 0 && n != GNUTLS_E_AGAIN) {
				fail_stream(w, "write", (int)n);
				return -1;
			}
		} else {
			n = send(w->fd, bytes, len, MSG_NOSIGNAL);
			if (n == -1 && errno == EINTR)
				continue;
			if (n == -1 && errno != EAGAIN) {
				fail_stream(w, "write", errno);
				return -1;
			}
		}
		if (n > 0) {
			w->counts.bytes_out += (uint64_t)n;
			w->is_answer_due = true;
			bytes += n;
			len -= (size_t)n;
		} else if (wait_ready(w, POLLOUT) == -1)
			return -1;
	}
	return 0;
}

int
wire_start_tls(struct wire *w, struct err *err)
{
	int r;

	if (!wire_is_drained(w))
		return err_set(err, ERR_TLS, "%s: bytes in the clear came "
		    "behind the answer to STARTTLS: somebody may be "
		    "tampering with the connection", w->host);
	if (tls_session_new(&w->tls, w->host, w->fd, err) == -1)
		return -1;
	for (;;) {
		r = gnutls_handshake(w->tls);
		if (r == GNUTLS_E_SUCCESS)
			break;
		if (r == GNUTLS_E_AGAIN || r == GNUTLS_E_INTERRUPTED) {
			if (look_at_clock(w, clock_mono_msecs()) == -1 ||
			    wait_ready(w, gnutls_record_get_direction(w->tls) ?
				    POLLOUT : POLLIN) == -1) {
				*err = w->error;
				return err_prefix(err, "TLS handshake");
			}
			continue;
		}
		if (!gnutls_error_is_fatal(r))
			continue;
		tls_describe_failure(w->tls, w->host, r, err);
		wire_fail(w, err->kind, "TLS handshake failed");
		return -1;
	}
	rawlog_note(w->rawlog, "TLS started");
	return 0;
}

/* --- lines --------------------------------------------------------------- */

/* The verdict of mend, and the literal behind the line. */
static int
take_line(struct wire *w, const char *line, size_t len)
{
	rawlog_in(w->rawlog, line, len);
	if (len > w->text_left) {
		wire_fail(w, ERR_PROTOCOL, "the answer is too long");
		return -1;
	}
	w->text_left -= len;
	switch (mend_line(&w->mend, line, len, &w->out)) {
	case MEND_PASS:
		w->is_holding = false;
		break;
	case MEND_HOLD:
		w->is_holding = true;
		break;
	case MEND_BYE:
		words_for_bye(w->mend.notes.last_words, w->host, &w->pending);
		return 0;
	case MEND_STRAY:
		words_for_stray(w->mend.notes.last_words, w->host, &w->pending);
		return 0;
	}
	if (!w->mend.has_literal)
		return 0;
	if (w->mend.literal > w->max_literal) {
		wire_fail(w, ERR_PROTOCOL, "a string of %llu bytes was "
		    "announced, more than the %llu allowed",
		    (unsigned long long)w->mend.literal,
		    (unsigned long long)w->max_literal);
		return -1;
	}
	w->literal_left = w->mend.literal;
	w->keep_literal = w->mend.keep_literal;
	return 0;
}

static size_t
line_limit(const struct wire *w, const char *line, size_t len)
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
digest(struct wire *w)
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
			if (take_line(w, from, n) == -1)
				return -1;
			continue;
		}
		buf_add(&w->line, from, n);
		if (w->line.len > line_limit(w, w->line.data, w->line.len)) {
			wire_fail(w, ERR_PROTOCOL,
			    "a line of more than %zu bytes", w->max_line);
			return -1;
		}
		if (end != NULL) {
			int r = take_line(w, w->line.data, w->line.len);

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
make_room(struct wire *w)
{
	if (w->raw == NULL)
		w->raw = xmalloc(RAW_SIZE);
	if (w->raw_from == w->raw_to)
		w->raw_from = w->raw_to = 0;
}

static bool
has_out(const struct wire *w)
{
	return w->out.len > 0 && !w->is_holding;
}

static size_t
copy_out(struct wire *w, char *to, size_t size)
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
copy_literal(struct wire *w, char *to, size_t size)
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
read_ready(struct wire *w, char *to, size_t size)
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
		else if (digest(w) == -1)
			return got > 0 ? (ssize_t)got : -1;
		else
			n = 0;
		got += n;
	}
	return (ssize_t)got;
}

static ssize_t
on_read(mailstream_low *low, void *to, size_t size)
{
	struct wire *w = low->data;
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
			if ((n = receive(w, to, size)) > 0)
				w->literal_left -= (uint64_t)n;
			return n;
		}
		make_room(w);
		if ((n = receive(w, w->raw + w->raw_to,
			 RAW_SIZE - w->raw_to)) < 0)
			return -1;
		w->raw_to += (size_t)n;
	}
}

int
wire_feed(struct wire *w)
{
	ssize_t n;

	if (w->error.kind != ERR_NONE)
		return -1;
	make_room(w);
	if (w->raw_to == RAW_SIZE)
		return digest(w); /* read first */
	n = receive_some(w, w->raw + w->raw_to, RAW_SIZE - w->raw_to);
	if (n > 0)
		w->raw_to += (size_t)n;
	else if (n < 0)
		return -1;
	return digest(w);
}

bool
wire_has_line(struct wire *w)
{
	if (w->error.kind == ERR_NONE)
		digest(w);
	return has_out(w) || w->pending.kind != ERR_NONE ||
	    w->error.kind != ERR_NONE;
}

bool
wire_is_drained(const struct wire *w)
{
	return w->raw_from == w->raw_to && w->out.len == 0 &&
	    w->line.len == 0 && w->literal_left == 0 &&
	    (w->tls == NULL || gnutls_record_check_pending(w->tls) == 0);
}

void
wire_slim(struct wire *w)
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

/* --- the driver ---------------------------------------------------------- */

static ssize_t
on_write(mailstream_low *low, const void *bytes, size_t size)
{
	return wire_send(low->data, bytes, size, false) == 0 ? (ssize_t)size :
							       -1;
}

static int
on_close(mailstream_low *low)
{
	(void)low; /* wire_free does */
	return 0;
}

static int
on_get_fd(mailstream_low *low)
{
	return wire_fd(low->data);
}

static void
on_free(mailstream_low *low)
{
	(void)low; /* it is part of struct wire */
}

static void
on_cancel(mailstream_low *low)
{
	(void)low;
}
