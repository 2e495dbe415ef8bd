/*
 * address.h - From, To and their kind, however broken.
 */
#ifndef MIME_ADDRESS_H
#define MIME_ADDRESS_H

#include "base/arena.h"
#include "mime/header.h"
#include "mail/message.h"

struct address_list {
	struct address *items;
	size_t n, cap;
	size_t max; /* further ones are left out */
	bool is_cut;
};

/* Adds the addresses of one header. */
void address_parse(struct arena *arena, const struct field *field, char kind,
    struct address_list *list);

#endif
