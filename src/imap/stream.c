/*
 * stream.c - the bytes between libetpan and the server: socket, TLS, patience.
 *
 * Runs in: hot, pool and job children.  Blocks in poll(2), within a deadline.
 *
 * What comes in is taken apart in input.c before the parser sees it.
 */
#include "imap/stream_private.h"

#include "base/clock.h"
#include "base/xmem.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLICE_MSECS 1000

static ssize_t stream_on_write(
    mailstream_low *low, const void *bytes, size_t size);
static int on_close(mailstream_low *low);
static int on_get_fd(mailstream_low *low);
static void on_free(mailstream_low *low);
static void on_cancel(mailstream_low *low);

static mailstream_low_driver driver = {
    .mailstream_read = input_read,
    .mailstream_write = stream_on_write,
    .mailstream_close = on_close,
    .mailstream_get_fd = on_get_fd,
    .mailstream_free = on_free,
    .mailstream_cancel = on_cancel,
};

struct stream *
stream_new(const struct stream_params *params)
{
	struct stream *w = xcalloc(1, sizeof(*w));

	w->fd = params->fd;
	snprintf(w->host, sizeof(w->host), "%s", params->host);
	w->no_alpn = params->no_alpn;
	w->max_line = params->max_line;
	w->rawlog = params->rawlog;
	w->may_go_on = params->may_go_on;
	w->arg = params->arg;
	w->low.data = w;
	w->low.driver = &driver;
	w->low.privacy = 1;
	sanitize_init(&w->sanitizer);
	stream_set_limits(w, 65536, 1 << 20);
	return w;
}

void
stream_free(struct stream **w)
{
	struct stream *gone = *w;

	if (gone == NULL)
		return;
	if (gone->tls != NULL)
		gnutls_deinit(gone->tls);
	if (gone->fd != -1)
		close(gone->fd);
	free(gone->raw);
	buf_release(&gone->line);
	buf_release(&gone->out);
	sanitize_release(&gone->sanitizer);
	rawlog_close(&gone->rawlog);
	free(gone);
	*w = NULL;
}

mailstream_low *
stream_low(struct stream *w)
{
	return &w->low;
}

int
stream_fd(const struct stream *w)
{
	return w->fd;
}

bool
stream_is_tls(const struct stream *w)
{
	return w->tls != NULL;
}

bool
stream_is_alpn_refused(const struct stream *w)
{
	return w->tls != NULL && gnutls_alert_get(w->tls) ==
	    GNUTLS_A_NO_APPLICATION_PROTOCOL;
}

struct sanitize_notes *
stream_notes(struct stream *w)
{
	return &w->sanitizer.notes;
}

struct rawlog *
stream_rawlog(struct stream *w)
{
	return w->rawlog;
}

const struct err *
stream_error(const struct stream *w)
{
	return &w->error;
}

const struct stream_counts *
stream_counts(const struct stream *w)
{
	return &w->counts;
}

void
stream_fail(struct stream *w, enum err_kind kind, const char *fmt, ...)
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
stream_set_deadline(struct stream *w, int64_t msecs)
{
	w->deadline_mono_msecs = clock_mono_msecs() + msecs;
	if (w->limit_mono_msecs != 0 &&
	    w->deadline_mono_msecs > w->limit_mono_msecs)
		w->deadline_mono_msecs = w->limit_mono_msecs;
	w->stall_msecs = w->grace_mono_msecs = 0;
}

void
stream_set_limit(struct stream *w, int64_t mono_msecs)
{
	w->limit_mono_msecs = mono_msecs;
}

void
stream_set_stall(struct stream *w, int64_t msecs)
{
	stream_set_deadline(w, msecs);
	w->stall_msecs = msecs;
	w->waited_msecs = 0;
	w->rate_bytes = 0;
}

void
stream_hide(struct stream *w, const char *password)
{
	mask_init(&w->mask, password);
	w->sanitizer.mask = &w->mask;
	rawlog_hide(w->rawlog, &w->mask);
}

void
stream_hide_later(struct stream *w)
{
	mask_forget(&w->mask);
}

void
stream_set_budget(struct stream *w, uint64_t bytes, bool hands_on_fetch)
{
	w->hands_on_fetch = hands_on_fetch;
	w->has_budget = true;
	w->budget_left = bytes;
	w->sanitizer.notes.is_cut = false;
}

void
stream_set_no_budget(struct stream *w)
{
	w->has_budget = false;
}

void
stream_set_grace(struct stream *w, int64_t msecs)
{
	w->grace_mono_msecs = clock_mono_msecs() + msecs;
}

void
stream_set_limits(struct stream *w, uint64_t max_literal, uint64_t max_text)
{
	w->max_literal = w->sanitizer.max_body = max_literal;
	w->text_left = max_text;
}

/* 0 or -1 with w->error set. */
static int
look_at_clock(struct stream *w, int64_t now)
{
	int64_t window;

	if (w->stall_msecs == 0) {
		if (now < w->deadline_mono_msecs)
			return 0;
		stream_fail(w, ERR_DEADLINE, "no complete answer in time");
		return -1;
	}
	window = w->stall_msecs < STREAM_RATE_MSECS / 2 ? 2 * w->stall_msecs :
							STREAM_RATE_MSECS;
	if (w->waited_msecs < window || now < w->grace_mono_msecs)
		return 0;
	if ((int64_t)w->rate_bytes < w->waited_msecs * STREAM_MIN_RATE / 1000) {
		stream_fail(w, ERR_DEADLINE,
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
stream_note_arrival(struct stream *w, size_t n)
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
wait_ready(struct stream *w, short events)
{
	struct pollfd p = { .fd = w->fd, .events = events };
	int64_t start = clock_mono_msecs(), now = start, left;
	struct err err = ERR_INIT;
	int r;

	for (;;) {
		left = w->deadline_mono_msecs - now;
		if (left <= 0) {
			stream_fail(w, ERR_DEADLINE, "no answer in time");
			return -1;
		}
		r = poll(&p, 1, (int)(left < SLICE_MSECS ? left : SLICE_MSECS));
		now = clock_mono_msecs();
		if (r > 0) {
			w->waited_msecs += now - start;
			return 0;
		}
		if (r == -1 && errno != EINTR) {
			stream_fail(w, ERR_NETWORK, "poll: %s", strerror(errno));
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
fail_stream(struct stream *w, const char *what, int code)
{
	if (w->tls == NULL)
		stream_fail(w, ERR_NETWORK, "%s: %s", what, strerror(code));
	else if (code == GNUTLS_E_PREMATURE_TERMINATION ||
	    code == GNUTLS_E_PULL_ERROR || code == GNUTLS_E_PUSH_ERROR)
		stream_fail(w, ERR_NETWORK, "%s: connection lost", what);
	else
		stream_fail(w, ERR_TLS, "%s: %s", what, gnutls_strerror(code));
}

ssize_t
stream_receive_some(struct stream *w, void *to, size_t size)
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
		stream_fail(w, ERR_NETWORK, "server closed the connection");
	else if (n < 0)
		fail_stream(w, "read", code);
	if (n <= 0)
		return -1;
	stream_note_arrival(w, (size_t)n);
	return n;
}

ssize_t
stream_receive(struct stream *w, void *to, size_t size)
{
	ssize_t n;

	for (;;) {
		if (w->error.kind != ERR_NONE ||
		    look_at_clock(w, clock_mono_msecs()) == -1)
			return -1;
		if ((n = stream_receive_some(w, to, size)) != 0)
			return n;
		if (wait_ready(w, POLLIN) == -1)
			return -1;
	}
}

int
stream_send(struct stream *w, const char *bytes, size_t len, bool is_secret)
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
stream_start_tls(struct stream *w, struct err *err)
{
	int r;

	if (!stream_is_drained(w))
		return err_set(err, ERR_TLS, "%s: bytes in the clear came "
		    "behind the answer to STARTTLS: somebody may be "
		    "tampering with the connection", w->host);
	tls_peer_init(&w->peer, w->host);
	if (tls_session_new(&w->tls, &w->peer, w->fd, !w->no_alpn, err) == -1)
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
		stream_fail(w, err->kind, "TLS handshake failed");
		return -1;
	}
	rawlog_note(w->rawlog, "TLS started");
	return 0;
}

/* --- the driver ---------------------------------------------------------- */

static ssize_t
stream_on_write(mailstream_low *low, const void *bytes, size_t size)
{
	return stream_send(low->data, bytes, size, false) == 0 ? (ssize_t)size :
							       -1;
}

static int
on_close(mailstream_low *low)
{
	(void)low; /* stream_free does */
	return 0;
}

static int
on_get_fd(mailstream_low *low)
{
	return stream_fd(low->data);
}

static void
on_free(mailstream_low *low)
{
	(void)low; /* it is part of struct stream */
}

static void
on_cancel(mailstream_low *low)
{
	(void)low;
}
