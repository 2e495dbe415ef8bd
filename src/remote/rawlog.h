/*
 * rawlog.h - what went over the wire, for whoever debugs one account.
 *
 * Lines only: the bytes of literals are counted, not written.  Secrets are
 * blanked.  A NULL rawlog is allowed everywhere and does nothing.
 */
#ifndef REMOTE_RAWLOG_H
#define REMOTE_RAWLOG_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct rawlog;

/* Appends; the file is made with mode 0600.  path NULL or "": no log. */
int rawlog_open(struct rawlog **l_r, const char *path, struct err *err);
void rawlog_close(struct rawlog **l);

/* Lines that hold `secret` are blanked until it is set to NULL again.  The
 * string is not copied. */
void rawlog_hide(struct rawlog *l, const char *secret);

void rawlog_in(struct rawlog *l, const char *line, size_t len);
void rawlog_out(struct rawlog *l, const char *line, size_t len,
    bool is_secret);
void rawlog_note(struct rawlog *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
