/*
 * catchall.h - the libetpan extension for what no other parser knows.
 */
#ifndef REMOTE_CATCHALL_H
#define REMOTE_CATCHALL_H

#include "base/err.h"

#include <libetpan/libetpan.h>

#include <stdbool.h>

/* Once, before fork; again is harmless. */
int catchall_register(struct err *err);
/* Is this a FETCH line that the parser gave up on? */
bool catchall_is_fetch(const struct mailimap_extension_data *data);

#endif
