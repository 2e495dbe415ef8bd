/*
 * status.h - inside imap: the parts of a flight of STATUS commands.
 */
#ifndef IMAP_STATUS_H
#define IMAP_STATUS_H

#include "base/buf.h"
#include "imap/session.h"

/* Appends commands with the next tags, as many as fit into a flight. */
int status_add(struct imap *r, struct buf *out, const char *const *wires,
    size_t n, size_t *n_added_r, struct err *err);
/* Their answers, from first_tag on. */
int status_read(struct imap *r, struct imap_status *status_r, size_t n,
    int first_tag, size_t *n_bad_r, struct err *err);
/* An item the server does not know is BAD (iCloud): true when all of them were
 * refused so; the next are asked without it. */
bool status_was_refused(struct imap *r, size_t n, size_t n_bad);

#endif
