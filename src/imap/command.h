/*
 * command.h - inside imap: commands out, replies in.
 *
 * Commands are written by ourselves, checked, with a tag of our own, so that
 * several can be in flight.  Replies are read line by line where only their
 * end counts, and by libetpan where their data counts.
 */
#ifndef IMAP_COMMAND_H
#define IMAP_COMMAND_H

#include "imap/session.h"

enum reply_status { REPLY_OK, REPLY_NO, REPLY_BAD };

struct reply {
	enum reply_status status;
	char text[240]; /* "[CODE] words" */
};

/* Begins a command in `out` with the next tag. */
int command_begin(struct imap *r, struct buf *out);
/* A quoted string; refuses CR, LF and NUL. */
int command_add_string(struct buf *out, const char *s, struct err *err);
/* "1:3,5,9:10" from ascending numbers, as many as fit below the limit of a
 * line.  Returns how many were taken. */
size_t command_add_set(struct buf *out, const uint32_t *uids, size_t n);
/* Sends one or more commands, with the last CRLF added.  Asks the caller first
 * whether to go on. */
int command_send(struct imap *r, struct buf *out, struct err *err);

/* Reads up to the tagged reply.  Untagged data is parsed: FETCH goes to
 * r->on_message or r->changes, VANISHED to r->changes. */
int command_reply(struct imap *r, int tag, struct reply *reply_r,
    struct err *err);
/* The same without parsing: untagged data is thrown away.  Continuation
 * requests are answered with `answers` (up to a NULL; itself NULL for none),
 * then with empty lines. */
int command_reply_lines(struct imap *r, int tag, const char *const *answers,
    struct reply *reply_r, struct err *err);
/* Reads the answers of commands sent along (ID, ENABLE); the replies above do
 * it by themselves. */
int command_settle(struct imap *r, struct err *err);
/* "42 OK text" of our tag?  Used where lines are read one by one. */
bool command_is_tagged(const char *line, int tag, struct reply *reply_r);

/* begin + send + reply; OK or ERR_SERVER with the server's words. */
int command_simple(struct imap *r, const char *command, struct err *err);
/* 0 for OK; NO and BAD become ERR_SERVER, or ERR_THROTTLED (session over). */
int reply_check(struct imap *r, const struct reply *reply, const char *what,
    struct err *err);
int reply_check_object(struct imap *r, const struct reply *reply,
    const char *what, struct err *err);

#endif
