/*
 * date.h - the Date header, as mailers really write it.
 */
#ifndef MIME_DATE_H
#define MIME_DATE_H

#include "base/banned.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* false: not a date anybody could read; never "now", never 1970. */
bool date_parse(const char *value, size_t len, int64_t *secs_r);

#endif
