/*
 * clock.c - three clocks.
 *
 * Runs in: every process.  Never blocks.
 */
#include "base/clock.h"

#include <inttypes.h>

static int64_t
read_msecs(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t
clock_mono_msecs(void)
{
	return read_msecs(CLOCK_MONOTONIC);
}

int64_t
clock_boot_msecs(void)
{
	return read_msecs(CLOCK_BOOTTIME);
}

int64_t
clock_wall_msecs(void)
{
	return read_msecs(CLOCK_REALTIME);
}

int64_t
clock_wall_secs(void)
{
	return clock_wall_msecs() / 1000;
}

const char *
clock_format_utc(char *out, size_t size, int64_t wall_secs)
{
	time_t t = (time_t)wall_secs;
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL)
		snprintf(out, size, "@%" PRId64, wall_secs);
	else
		strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return out;
}

const char *
clock_format_span(char *out, size_t size, int64_t secs)
{
	if (secs < 0)
		secs = 0;
	if (secs < 120)
		snprintf(out, size, "%" PRId64 " s", secs);
	else if (secs < 7200)
		snprintf(out, size, "%" PRId64 " min", secs / 60);
	else if (secs < 172800)
		snprintf(out, size, "%" PRId64 " h", secs / 3600);
	else
		snprintf(out, size, "%" PRId64 " d", secs / 86400);
	return out;
}
