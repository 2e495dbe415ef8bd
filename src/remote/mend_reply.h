/*
 * mend_reply.h - inside mend: the replies that are written anew.
 */
#ifndef REMOTE_MEND_REPLY_H
#define REMOTE_MEND_REPLY_H

#include "remote/mend.h"

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

enum mend_verdict mend_skip(struct mend *m, const struct scan *s);

/* `s` stands behind the word (LIST, STATUS, FETCH). */
enum mend_verdict mend_list(struct mend *m, struct scan *s, struct buf *out);
enum mend_verdict mend_status_begin(struct mend *m, struct scan *s,
    struct buf *out);
enum mend_verdict mend_status_items(struct mend *m, struct scan *s,
    struct buf *out);
enum mend_verdict mend_fetch_begin(struct mend *m, struct scan *s,
    uint32_t number, struct buf *out);
enum mend_verdict mend_fetch_items(struct mend *m, struct scan *s,
    struct buf *out);

#endif
