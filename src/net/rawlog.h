/*
 * rawlog.h - what went over the wire, for whoever debugs one account.
 *
 * Lines only: the bytes of literals are counted, not written.  Secrets are
 * blanked.  A NULL rawlog is allowed everywhere and does nothing.
 */
#ifndef NET_RAWLOG_H
#define NET_RAWLOG_H

#include "base/err.h"
#include "net/mask.h"

#include <stdbool.h>
#include <stddef.h>

struct rawlog;

/* Appends; the file is made with mode 0600.  path NULL or "": no log. */
int rawlog_open(struct rawlog **l_r, const char *path, struct err *err);
void rawlog_close(struct rawlog **l);

/* What the server says is written without what the mask hides, from now on;
 * the mask is not copied. */
void rawlog_hide(struct rawlog *l, const struct mask *mask);

void rawlog_in(struct rawlog *l, const char *line, size_t len);
void rawlog_out(struct rawlog *l, const char *line, size_t len,
    bool is_secret);
void rawlog_note(struct rawlog *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
