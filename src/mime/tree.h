/*
 * tree.h - the leaves of a message and what each is for.
 */
#ifndef MIME_TREE_H
#define MIME_TREE_H

#include "mime/codec.h"
#include "mime/header.h"
#include "mime/mime.h"

enum leaf_role {
	ROLE_FILE,	/* an attachment */
	ROLE_PLAIN,	/* readable as it is */
	ROLE_HTML,
	ROLE_SIGNATURE,
	ROLE_REPORT,	/* the machine's parts of a report */
	ROLE_CONTROL,	/* nothing for people */
};

struct leaf {
	struct headers headers;
	const char *type; /* "type/subtype" */
	const char *name; /* NULL: none */
	enum leaf_role role;
	uint64_t start, end; /* in the source */
	const char *bytes;   /* not NULL: these end - start bytes instead */
	bool is_raw;	     /* a broken multipart shown as it is */
	bool is_text;	     /* belongs to what a person reads */
	bool is_alternative; /* of a text that is preferred to it */
	bool is_listed;	     /* as an attachment */
	struct leaf *next;
};

struct tree {
	struct leaf *first, **last;
	size_t n;
	enum charset charset; /* of the first text that says one */
};

/* Once, before fork. */
void tree_init(void);

/* NULL, or the static reason why some leaves are missing. */
const char *tree_build(struct arena *arena, struct source *src,
    const struct headers *headers, const struct mime_limits *limits,
    struct tree *tree);

#endif
