/*
 * unwrap.h - leaves that hold other parts in formats that are not MIME's own.
 */
#ifndef MIME_UNWRAP_H
#define MIME_UNWRAP_H

#include "mime/tree.h"

/*
 * Puts behind each S/MIME part that is signed and not encrypted the leaves of
 * what it signs, behind each TNEF part (winmail.dat) its text and files, and
 * behind the first piece of a message sent in pieces what it holds.
 */
void unwrap(struct arena *arena, const struct mime_limits *limits,
    struct tree *tree);

/* The leaves' sources are gone then. */
void unwrap_release(struct tree *tree);

#endif
