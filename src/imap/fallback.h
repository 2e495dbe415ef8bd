/*
 * fallback.h - the libetpan extension for what no other parser knows.
 */
#ifndef IMAP_FALLBACK_H
#define IMAP_FALLBACK_H

#include "base/err.h"

#include <libetpan/libetpan.h>

#include <stdbool.h>

/* Once, before fork; again is harmless. */
int fallback_register(struct err *err);
/* Is this a FETCH line that the parser gave up on? */
bool fallback_is_fetch(const struct mailimap_extension_data *data);

/* "NAME value" of an item of STATUS that no other parser knows, else NULL. */
const char *fallback_status_item(const struct mailimap_extension_data *data);

#endif
