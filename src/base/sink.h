/*
 * sink.h - where the lines of the log go, without ever waiting for a reader.
 */
#ifndef BASE_SINK_H
#define BASE_SINK_H

#include "base/banned.h"

#include <stddef.h>

/* Appends to this file instead; NULL or "": standard error. */
int sink_set_file(const char *path);
/* Sends to the socket of syslog (a datagram or a stream) instead. */
void sink_set_syslog(const char *path);
/* The target was moved away or has ended: opens it anew.  -1: it goes on with
 * the one it has. */
int sink_reopen(void);
/*
 * Standard error, which we share with who started us, is opened once more for
 * ourselves, so that it can be made non-blocking for us alone.  Before
 * privileges are dropped: a pipe belongs to who made it.
 */
void sink_never_wait(void);

/* One line.  -1: there was no room for it, or no reader; it is lost. */
int sink_write(const char *line, size_t len);
/* Descriptor a child must keep open. */
int sink_fd(void);

#endif
