/*
 * entity.h - characters that HTML writes by name or by number.
 */
#ifndef MIME_ENTITY_H
#define MIME_ENTITY_H

#include "base/banned.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What "&..." at `p` stands for, in codes[0] and perhaps codes[1] (else 0);
 * behind it is returned, NULL when it is just an ampersand.
 */
const char *entity_read(const char *p, const char *end, uint32_t codes[2]);

#endif
