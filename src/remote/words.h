/*
 * words.h - what servers mean by what they say.
 *
 * The texts of NO, BAD and BYE are the only place where many servers tell a
 * busy moment from a wrong password.  Pure.
 */
#ifndef REMOTE_WORDS_H
#define REMOTE_WORDS_H

#include "base/err.h"

#include <stdbool.h>

/*
 * Is this a request to come back later?  Sets how long: what the text asks
 * for, else what the kind of trouble suggests.
 */
bool words_ask_to_wait(const char *text, uint32_t *retry_after_secs_r);

/* A refused login (R-LIFE-6): ERR_AUTH only when the server speaks of the
 * credentials. */
void words_for_login(const char *text, bool is_bad, const char *host,
    struct err *err);
/* A BYE, and a line that is no reply at all (L044). */
void words_for_bye(const char *text, const char *host, struct err *err);
void words_for_stray(const char *text, const char *host, struct err *err);

#endif
