/*
 * ids.h - Message-ID, In-Reply-To and References.
 */
#ifndef MIME_IDS_H
#define MIME_IDS_H

#include "base/arena.h"
#include "mime/header.h"

/* The message's own id without < >, verbatim and clean UTF-8; NULL: none. */
const char *ids_own(struct arena *arena, const struct field *field);

/* The one it answers; `own` (may be NULL) is none of those. */
const char *ids_parent(struct arena *arena, const struct field *field,
    const char *own);

/* All of them in order; of very many the first and the last ones. */
const char **ids_all(struct arena *arena, const struct field *field,
    const char *own, size_t *n_r);

#endif
