/*
 * clock.h - three clocks, each in its unit's name.
 *
 * mono: intervals inside one process.  boot: also counts suspend
 * (CLOCK_BOOTTIME); lease deadlines use it, so that a host that slept knows
 * it is late.  wall: for people and tables only, never for a deadline.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/banned.h"

#include <stdint.h>

int64_t clock_mono_msecs(void);
int64_t clock_boot_msecs(void);
int64_t clock_wall_msecs(void);
int64_t clock_wall_secs(void);

/* "2026-03-03T09:00:00Z"; needs 32 bytes.  Any 64-bit time is printed. */
const char *clock_format_utc(char *out, size_t size, int64_t wall_secs);

/* "3 s", "12 min", "5 h", "9 d": for people. */
const char *clock_format_span(char *out, size_t size, int64_t secs);

#endif
