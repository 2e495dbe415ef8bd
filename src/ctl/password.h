/*
 * password.h - a secret from a file, from standard input or typed in.
 *
 * Never from the command line: argv is world-readable.
 */
#ifndef CTL_PASSWORD_H
#define CTL_PASSWORD_H

#include "base/err.h"

#include <stddef.h>

#define PASSWORD_SIZE 4096

/*
 * file: a path, "-" = standard input, NULL = ask on the terminal,
 * without echo.  One line end at the end is not part of it.  Clear the buffer
 * with explicit_bzero() after use.
 */
int password_read(const char *file, const char *prompt,
    char secret_r[PASSWORD_SIZE], size_t *len_r, struct err *err);

#endif
