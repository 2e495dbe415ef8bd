/*
 * ids.h - Message-ID, In-Reply-To and References.
 */
#ifndef MIME_IDS_H
#define MIME_IDS_H

#include "base/arena.h"
#include "mime/header.h"

/* The first id without < >, verbatim and clean UTF-8; NULL: none. */
const char *ids_first(struct arena *arena, const struct field *field);

/* All of them in order; of very many the first and the last ones. */
const char **ids_all(struct arena *arena, const struct field *field,
    size_t *n_r);

#endif
