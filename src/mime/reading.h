/*
 * reading.h - what a person reads of a leaf.
 */
#ifndef MIME_READING_H
#define MIME_READING_H

#include "mime/html.h"
#include "mime/tree.h"
#include "mime/uuencode.h"

struct reading {
	struct arena *arena;
	struct tree *tree;	/* learns the charset of the first text */
	struct uu_file *files;	/* that stood in texts, the last one first */
};

/*
 * Appends the text of a leaf, of any length, as long as `out` has less than
 * `max` bytes; false: there was more.  Markup takes no room.
 */
bool reading_add(struct reading *r, const struct leaf *leaf, struct buf *out,
    size_t max);

/* The same with the first words of it only, about `max` bytes; no files. */
void reading_sample(struct reading *r, const struct leaf *leaf,
    struct buf *out, size_t max);

/* What an HTML leaf refers to. */
void reading_find_cids(struct reading *r, const struct leaf *leaf,
    struct cid_list *list);

bool reading_is_blank(const char *text, size_t len);

#endif
