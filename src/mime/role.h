/*
 * role.h - what a leaf is for.
 */
#ifndef MIME_ROLE_H
#define MIME_ROLE_H

#include "mime/tree.h"

/* What a multipart means for its children. */
enum kind { KIND_MIXED, KIND_ALTERNATIVE, KIND_RELATED, KIND_SIGNED,
	KIND_ENCRYPTED, KIND_REPORT, KIND_DIGEST, KIND_APPLEDOUBLE };

/* Where a part stands in its multipart. */
struct spot {
	enum kind parent;
	bool is_root; /* the part that the others serve, or the first */
	unsigned depth;
};

enum kind role_kind(const char *type);
bool role_is_multipart(const char *type);
/* A text, and which of the two. */
bool role_is_readable(const char *type, enum leaf_role *role_r);

/*
 * As a file beside the text, or by its place; is_first: of all leaves.  May
 * set leaf->is_second.
 */
enum leaf_role role_of(struct arena *arena, struct leaf *leaf,
    const struct spot *spot, bool is_first);

#endif
