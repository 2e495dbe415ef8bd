/*
 * gone.h - is a process of this host, boot and process namespace no more?
 *
 * Runs in: master.  Never blocks.  One that only waits to be reaped is gone.
 */
#ifndef LEASE_GONE_H
#define LEASE_GONE_H

#include "base/banned.h"

#include <stdbool.h>

bool process_is_gone(long pid);

#endif
