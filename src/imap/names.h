/*
 * names.h - folder names for people (modified UTF-7, RFC 3501 5.1.3).
 */
#ifndef IMAP_NAMES_H
#define IMAP_NAMES_H

#include "base/arena.h"

#include <stdbool.h>

/*
 * UTF-8 of a wire name.  A name that is no modified UTF-7 is taken as the
 * UTF-8 it may be, and cleaned.  INBOX is spelled so in any case (L058).
 */
const char *name_for_people(struct arena *arena, const char *wire);
bool name_is_inbox(const char *wire);

#endif
