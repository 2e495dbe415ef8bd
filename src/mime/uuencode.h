/*
 * uuencode.h - files that stand uuencoded in a plain text.
 */
#ifndef MIME_UUENCODE_H
#define MIME_UUENCODE_H

#include "base/arena.h"

#include <stdint.h>

struct uu_file {
	const char *name;
	uint64_t size;
	struct uu_file *next;
};

/*
 * Takes complete uuencoded files out of `text` (LF line ends, changed in
 * place; returns the new length) and puts them in front of *files.
 */
size_t uuencode_extract(struct arena *arena, char *text, size_t len,
    struct uu_file **files);

#endif
