/*
 * catchall.h - the libetpan extension for what no other parser knows.
 */
#ifndef REMOTE_CATCHALL_H
#define REMOTE_CATCHALL_H

#include "base/err.h"

/* Once, before fork; again is harmless. */
int catchall_register(struct err *err);

#endif
