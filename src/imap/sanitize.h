/*
 * sanitize.h - what servers send, made fit for the parser.
 *
 * libetpan loses its place after a line it does not know, and dies of some
 * (PERMANENTFLAGS, NAMESPACE, deep nesting).  So it never sees
 * a server's line as it came: each is reduced here to what we asked for, in
 * the plainest spelling, and everything else is left out.  Pure; the wire
 * calls it for each line outside literals.
 */
#ifndef IMAP_SANITIZE_H
#define IMAP_SANITIZE_H

#include "base/buf.h"
#include "net/mask.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sanitize_verdict {
	SANITIZE_PASS,  /* hand over and clear what is in `out` */
	SANITIZE_HOLD,  /* more of this reply must come first: keep `out` */
	SANITIZE_BYE,   /* the server ended the session: notes.last_words */
	SANITIZE_STRAY, /* neither "*" nor "+" nor a tag (L044): last_words */
	SANITIZE_TORN,  /* a body did not end where its length said */
};

/* What the parser is not told. */
struct sanitize_notes {
	struct buf capability;	/* words after CAPABILITY, the last one wins */
	bool has_capability;
	bool has_enabled;	/* an untagged ENABLED came */
	bool enabled_qresync, enabled_condstore;
	bool is_cut; /* see stream_set_budget */
	char last_words[240];
	unsigned n_broken_lists; /* lines left out */
	bool is_too_large;	 /* a body above max_body was skipped */
	unsigned n_lost_fetches; /* not even the UID could be read */
};

struct sanitizer {
	struct sanitize_notes notes;
	uint64_t max_body; /* of larger ones the parser is told NIL; 0: none */
	const struct mask *mask; /* what words may not show; NULL: nothing */
	uint64_t last_tag; /* commands are answered in their order, and once */

	/* After sanitize_line: a literal follows the line. */
	bool has_literal;
	bool keep_literal; /* else its bytes are to be thrown away */
	uint64_t literal;  /* UINT64_MAX: larger than any number */

	/* The reply a literal has interrupted. */
	enum sanitize_reply {
		REPLY_NONE,
		REPLY_SKIPPED,
		REPLY_LIST,
		REPLY_STATUS,
		REPLY_FETCH,
	} reply;
	unsigned value_depth; /* FETCH: inside the value of an unknown item */
	bool has_items;	      /* FETCH: something was passed on */
	bool has_uid;	      /* FETCH: UID was among it */
	uint32_t uid;	      /* FETCH: that */
	bool has_body;	      /* FETCH: the literal of a body was */
};

void sanitize_init(struct sanitizer *m);
void sanitize_release(struct sanitizer *m);

/* `line` with its line end.  Appends to `out`. */
enum sanitize_verdict sanitize_line(struct sanitizer *m, const char *line, size_t len,
    struct buf *out);

#endif
