/*
 * confirm.h - a question before something is removed.
 */
#ifndef CTL_CONFIRM_H
#define CTL_CONFIRM_H

#include "base/err.h"

#include <stdbool.h>

/*
 * Asks "QUESTION [y/N]" when a person sits at the terminal; a script means
 * what it says.  -1 when the answer is no.
 */
int confirm(bool yes, const char *question, struct err *err);

#endif
