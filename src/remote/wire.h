/*
 * wire.h - the bytes between libetpan and the server.
 *
 * A mailstream_low driver, plain or TLS.  What comes in is cut into lines and
 * literals, checked against the limits and mended (mend.h) before the parser
 * sees it; every wait has a deadline; the end of the stream is an error, never
 * 0 bytes.  The first error stays: wire_error says why a read failed.
 */
#ifndef REMOTE_WIRE_H
#define REMOTE_WIRE_H

#include "base/err.h"
#include "remote/mend.h"
#include "remote/rawlog.h"

#include <libetpan/mailstream.h>

#include <stdbool.h>
#include <stdint.h>

struct wire;

struct wire_params {
	int fd; /* non-blocking; the wire's from now on */
	const char *host;
	bool no_alpn; /* the server refuses connections that offer it */
	size_t max_line;
	struct rawlog *rawlog; /* the wire's from now on; may be NULL */
	/* Asked about once a second while waiting; -1 ends the wait. */
	int (*may_go_on)(void *arg, struct err *err);
	void *arg;
};

struct wire *wire_new(const struct wire_params *params);
/* Closes the descriptor. */
void wire_free(struct wire **w);

/* The driver; lives as long as the wire and does not own it. */
mailstream_low *wire_low(struct wire *w);

/*
 * TLS handshake within the deadline.  Refuses when bytes that came in the
 * clear were not read yet: they could be taken for protected ones (L001).
 */
int wire_start_tls(struct wire *w, struct err *err);

/* --- patience ------------------------------------------------------------ */

/* Everything until the next call must be over in `msecs`. */
void wire_set_deadline(struct wire *w, int64_t msecs);
/* No deadline is later than this, by the monotonic clock; 0: as it is set. */
void wire_set_limit(struct wire *w, int64_t mono_msecs);
/*
 * For replies of unknown length: an error when nothing comes for `msecs`, and
 * when less than WIRE_MIN_RATE is averaged over twice that time of waiting (at
 * most WIRE_RATE_MSECS), so that a server that drips bytes does not hold us for
 * ever.  Only time spent waiting for the server counts, not what the caller
 * does with the data.
 */
void wire_set_stall(struct wire *w, int64_t msecs);
/* Until then signs of life are enough, however few bytes they are. */
void wire_set_grace(struct wire *w, int64_t msecs);
#define WIRE_MIN_RATE 1024 /* bytes a second */
#define WIRE_RATE_MSECS 60000

/* From here on the server's words are kept without the password. */
void wire_hide(struct wire *w, const char *password);
/* The login is over: `password` is no longer looked at. */
void wire_hide_later(struct wire *w);
/*
 * What one reply may leave in memory, in bytes.  What is untagged beyond it is
 * thrown away, and mend_notes.is_cut set: whoever reads the reply knows that
 * it is not whole (R-MEM-3).  Of a FETCH that is handed on at once nothing but
 * its text stays.
 */
void wire_set_budget(struct wire *w, uint64_t bytes, bool hands_on_fetch);
/* Lines that are read one by one need none. */
void wire_set_no_budget(struct wire *w);
/* For the next replies: bytes of one literal, and of all text outside
 * literals. */
void wire_set_limits(struct wire *w, uint64_t max_literal, uint64_t max_text);

/* --- reading and writing ------------------------------------------------- */

/* All of it or an error. */
int wire_send(struct wire *w, const char *bytes, size_t len, bool is_secret);
/* Takes in what is there, without waiting. */
int wire_feed(struct wire *w);
/* A whole line can be read without waiting.  What libetpan has taken into its
 * own buffer is not known here. */
bool wire_has_line(struct wire *w);
/* Nothing has come that was not read. */
bool wire_is_drained(const struct wire *w);
/* Gives buffers back before a long wait. */
void wire_slim(struct wire *w);

/* --- state --------------------------------------------------------------- */

int wire_fd(const struct wire *w);
bool wire_is_tls(const struct wire *w);
/* The handshake failed for the server knows no protocol "imap" (RFC 7301). */
bool wire_is_alpn_refused(const struct wire *w);
struct mend_notes *wire_notes(struct wire *w);
struct rawlog *wire_rawlog(struct wire *w);
/* kind ERR_NONE: none yet. */
const struct err *wire_error(const struct wire *w);
/* The next read or write fails with this. */
void wire_fail(struct wire *w, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

struct wire_counts {
	uint64_t bytes_in, bytes_out;
	uint64_t round_trips; /* times something came after we had sent */
};
const struct wire_counts *wire_counts(const struct wire *w);

#endif
