/*
 * stream.h - the bytes between libetpan and the server.
 *
 * A mailstream_low driver, plain or TLS.  What comes in is cut into lines and
 * literals, checked against the limits and sanitized (sanitize.h) before the parser
 * sees it; every wait has a deadline; the end of the stream is an error, never
 * 0 bytes.  The first error stays: stream_error says why a read failed.
 */
#ifndef IMAP_STREAM_H
#define IMAP_STREAM_H

#include "base/err.h"
#include "imap/sanitize.h"
#include "net/rawlog.h"

#include <libetpan/mailstream.h>

#include <stdbool.h>
#include <stdint.h>

struct stream;

struct stream_params {
	int fd; /* non-blocking; the wire's from now on */
	const char *host;
	bool no_alpn; /* the server refuses connections that offer it */
	size_t max_line;
	struct rawlog *rawlog; /* the wire's from now on; may be NULL */
	/* Asked about once a second while waiting; -1 ends the wait. */
	int (*may_go_on)(void *arg, struct err *err);
	void *arg;
};

struct stream *stream_new(const struct stream_params *params);
/* Closes the descriptor. */
void stream_free(struct stream **w);

/* The driver; lives as long as the wire and does not own it. */
mailstream_low *stream_low(struct stream *w);

/*
 * TLS handshake within the deadline.  Refuses when bytes that came in the
 * clear were not read yet: they could be taken for protected ones (L001).
 */
int stream_start_tls(struct stream *w, struct err *err);

/* --- patience ------------------------------------------------------------ */

/* Everything until the next call must be over in `msecs`. */
void stream_set_deadline(struct stream *w, int64_t msecs);
/* No deadline is later than this, by the monotonic clock; 0: as it is set. */
void stream_set_limit(struct stream *w, int64_t mono_msecs);
/*
 * For replies of unknown length: an error when nothing comes for `msecs`, and
 * when less than STREAM_MIN_RATE is averaged over twice that time of waiting (at
 * most STREAM_RATE_MSECS), so that a server that drips bytes does not hold us for
 * ever.  Only time spent waiting for the server counts, not what the caller
 * does with the data.
 */
void stream_set_stall(struct stream *w, int64_t msecs);
/* Until then signs of life are enough, however few bytes they are. */
void stream_set_grace(struct stream *w, int64_t msecs);
#define STREAM_MIN_RATE 1024 /* bytes a second */
#define STREAM_RATE_MSECS 60000

/* From here on the server's words are kept without the password. */
void stream_hide(struct stream *w, const char *password);
/* The login is over: `password` is no longer looked at. */
void stream_hide_later(struct stream *w);
/*
 * What one reply may leave in memory, in bytes.  What is untagged beyond it is
 * thrown away, and sanitize_notes.is_cut set: whoever reads the reply knows that
 * it is not whole (R-MEM-3).  Of a FETCH that is handed on at once nothing but
 * its text stays.
 */
void stream_set_budget(struct stream *w, uint64_t bytes, bool hands_on_fetch);
/* Lines that are read one by one need none. */
void stream_set_no_budget(struct stream *w);
/* For the next replies: bytes of one literal, and of all text outside
 * literals. */
void stream_set_limits(struct stream *w, uint64_t max_literal, uint64_t max_text);

/* --- reading and writing ------------------------------------------------- */

/* All of it or an error. */
int stream_send(struct stream *w, const char *bytes, size_t len, bool is_secret);
/* Takes in what is there, without waiting. */
int stream_feed(struct stream *w);
/* A whole line can be read without waiting.  What libetpan has taken into its
 * own buffer is not known here. */
bool stream_has_line(struct stream *w);
/* Nothing has come that was not read. */
bool stream_is_drained(const struct stream *w);
/* Gives buffers back before a long wait. */
void stream_slim(struct stream *w);

/* --- state --------------------------------------------------------------- */

int stream_fd(const struct stream *w);
bool stream_is_tls(const struct stream *w);
/* The handshake failed for the server knows no protocol "imap" (RFC 7301). */
bool stream_is_alpn_refused(const struct stream *w);
struct sanitize_notes *stream_notes(struct stream *w);
struct rawlog *stream_rawlog(struct stream *w);
/* kind ERR_NONE: none yet. */
const struct err *stream_error(const struct stream *w);
/* The next read or write fails with this. */
void stream_fail(struct stream *w, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

struct stream_counts {
	uint64_t bytes_in, bytes_out;
	uint64_t round_trips; /* times something came after we had sent */
};
const struct stream_counts *stream_counts(const struct stream *w);

#endif
