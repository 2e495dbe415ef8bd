/*
 * leaf.h - the bytes of a leaf, decoded.
 */
#ifndef MIME_LEAF_H
#define MIME_LEAF_H

#include "mime/decode.h"
#include "mime/tree.h"

/* Decoded bytes piece by piece, in bounded memory. */
struct pieces {
	const struct leaf *leaf;
	struct decoder_state decoder;
	struct sink sink;
	unsigned char *scratch; /* SOURCE_CHUNK bytes, for files */
	uint64_t at;
	size_t used; /* of what the sink holds */
};

/* Said to be octets, with a name that ends so: senders that know no better. */
bool leaf_is_octets(const struct leaf *leaf, const char *suffix);

enum encoding leaf_encoding(const struct leaf *leaf);

/* Without keeping them. */
uint64_t leaf_size(const struct leaf *leaf);

/* Up to `max` of them; in the arena or in the message itself. */
const char *leaf_bytes(struct arena *arena, const struct leaf *leaf,
    size_t max, size_t *len_r);

/* As they stand in the message, up to `max` of them. */
const char *leaf_raw(struct arena *arena, const struct leaf *leaf, size_t max,
    size_t *len_r);

void pieces_init(struct pieces *p, const struct leaf *leaf);
/*
 * The next bytes, about `size` and at least to the end of a line where one is
 * near, so that no character is cut; false: there are none.
 */
bool pieces_next(struct pieces *p, size_t size, const char **bytes_r,
    size_t *len_r);
bool pieces_are_over(const struct pieces *p);
void pieces_release(struct pieces *p);

#endif
