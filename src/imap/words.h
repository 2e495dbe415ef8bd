/*
 * words.h - what servers mean by what they say.
 *
 * The texts of NO, BAD and BYE are the only place where many servers tell a
 * busy moment from a wrong password.  Pure.
 */
#ifndef IMAP_WORDS_H
#define IMAP_WORDS_H

#include "base/err.h"

#include <stdbool.h>

/*
 * Is this a request to come back later?  Then `err` is ERR_THROTTLED with how
 * long: what the text asks for, else what the kind of trouble suggests; and
 * with is_limit when the server counts connections.
 */
bool words_ask_to_wait(const char *text, const char *host, const char *what,
    struct err *err);
/* Said with a tagged OK: the command was done, but more slowly. */
bool words_slow_down(const char *text);

/* A refused login (R-LIFE-6): ERR_AUTH only when the server speaks of the
 * credentials. */
void words_for_login(const char *text, bool is_bad, const char *host,
    struct err *err);
/* A BYE, and a line that is no reply at all (L044). */
void words_for_bye(const char *text, const char *host, struct err *err);
void words_for_stray(const char *text, const char *host, struct err *err);

#endif
