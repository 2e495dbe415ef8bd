/*
 * tnef.h - what Outlook puts into winmail.dat (MS-OXTNEF).
 */
#ifndef MIME_TNEF_H
#define MIME_TNEF_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes in the TNEF stream; p NULL: absent. */
struct tnef_bytes {
	const unsigned char *p;
	size_t len;
	bool is_utf16; /* little endian; else of the code page, or binary */
};

struct tnef_file {
	struct tnef_bytes name, mime_type, content_id, data;
	struct tnef_file *next;
};

struct tnef {
	uint32_t codepage; /* of strings; 0: not said */
	uint32_t html_codepage;
	struct tnef_bytes subject, body, html, rtf;
	struct tnef_file *files;
	bool is_cut; /* ends in the middle, or makes no sense there */
};

/* false: it is none at all. */
bool tnef_read(struct arena *arena, const unsigned char *data, size_t len,
    struct tnef *tnef);

#endif
