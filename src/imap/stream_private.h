/*
 * stream_private.h - what stream.c and input.c share.
 */
#ifndef IMAP_STREAM_PRIVATE_H
#define IMAP_STREAM_PRIVATE_H

#include "net/tls.h"
#include "imap/stream.h"

struct stream {
	int fd;
	gnutls_session_t tls;
	struct tls_peer peer; /* who it must be */
	bool no_alpn;
	mailstream_low low; /* what libetpan knows of us */
	char host[256];
	struct rawlog *rawlog;
	int (*may_go_on)(void *arg, struct err *err);
	void *arg;

	char *raw; /* RAW_SIZE bytes, NULL while slim */
	size_t raw_from, raw_to;
	struct buf line; /* the beginning of a line whose end is not here yet */
	struct sanitizer sanitizer;
	struct mask mask; /* the password, in what the server says */
	struct buf out; /* sanitized, to be read */
	size_t out_from;
	bool is_holding;      /* `out` waits for the rest of the reply */
	uint64_t literal_left;
	bool keep_literal;
	struct err pending;   /* becomes `error` when `out` has been read */

	size_t max_line;
	uint64_t max_literal, text_left;
	bool hands_on_fetch;
	bool has_budget;
	uint64_t budget_left;
	int64_t deadline_mono_msecs;
	int64_t limit_mono_msecs; /* 0: none */
	int64_t stall_msecs; /* 0: the deadline is absolute */
	int64_t grace_mono_msecs; /* no least rate before */
	int64_t waited_msecs; /* since rate_bytes was 0 */
	uint64_t rate_bytes;

	struct err error;
	struct stream_counts counts;
	bool is_answer_due; /* something was sent since the last wait */
};

/* Bytes read, 0: nothing there, -1: error set.  EOF is an error. */
ssize_t stream_receive_some(struct stream *w, void *to, size_t size);
/* At least one byte, or -1. */
ssize_t stream_receive(struct stream *w, void *to, size_t size);

/* The driver's read: waits until the parser can be given something. */
ssize_t input_read(mailstream_low *low, void *to, size_t size);

#endif
