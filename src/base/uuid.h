/*
 * uuid.h - identifiers of users, accounts and jobs.  Random (version 4).
 */
#ifndef BASE_UUID_H
#define BASE_UUID_H

#include "base/banned.h"

#include <stdbool.h>
#include <stdint.h>

#define UUID_TEXT_SIZE 37 /* with the terminating NUL */

struct uuid {
	uint8_t bytes[16];
};

void uuid_generate(struct uuid *uuid);
/* Accepts only the 36-character form, any case.  -1 when it is not one. */
int uuid_parse(const char *text, struct uuid *uuid_r);
const char *uuid_format(const struct uuid *uuid, char out[UUID_TEXT_SIZE]);
bool uuid_is_equal(const struct uuid *a, const struct uuid *b);
bool uuid_is_null(const struct uuid *uuid);

#endif
