/*
 * sanitize_private.h - inside sanitize: the replies that are written anew.
 */
#ifndef IMAP_SANITIZE_PRIVATE_H
#define IMAP_SANITIZE_PRIVATE_H

#include "imap/sanitize.h"

/* A line without its end and without the literal announced there. */
struct scan {
	const char *p, *end;
	bool has_literal;
};

void scan_blanks(struct scan *s);
/* Up to a blank; may be empty. */
size_t scan_word(struct scan *s, const char **word_r);
/* false: no digit.  Larger than 64 bits: UINT64_MAX. */
bool scan_number(struct scan *s, uint64_t *number_r);
bool word_is(const char *word, size_t len, const char *expected);

enum sanitize_verdict sanitize_skip(struct sanitizer *m, const struct scan *s);

/* `s` stands behind the word (LIST, STATUS, FETCH). */
enum sanitize_verdict sanitize_list(struct sanitizer *m, struct scan *s, struct buf *out);
enum sanitize_verdict sanitize_status_begin(struct sanitizer *m, struct scan *s,
    struct buf *out);
enum sanitize_verdict sanitize_status_items(struct sanitizer *m, struct scan *s,
    struct buf *out);
enum sanitize_verdict sanitize_fetch_begin(struct sanitizer *m, struct scan *s,
    uint32_t number, struct buf *out);
enum sanitize_verdict sanitize_fetch_items(struct sanitizer *m, struct scan *s,
    struct buf *out);

#endif
