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
	struct source *src;
	uint64_t start, end; /* of its body in the source */
	unsigned depth;	     /* of what it was taken out of (unwrap.c) */
	unsigned group;	     /* the multipart/alternative it is in; 0: none */
	bool is_raw;	     /* a broken multipart shown as it is */
	bool is_text;	     /* belongs to what a person reads */
	bool is_alternative; /* of a text that is preferred to it */
	bool is_second;	     /* shown when nothing else is, always searched */
	bool is_listed;	     /* as an attachment */
	bool is_related;     /* serves the root of a multipart/related */
	struct leaf *next;
};

struct tree {
	struct leaf *first, **last;
	size_t n;
	unsigned n_groups;
	enum charset charset; /* of the first text that says one */
	const char *reason;   /* static: why leaves are missing; or NULL */
	struct held *held;    /* bytes that leaves refer to (unwrap.c) */
};

/* Once, before fork. */
void tree_init(void);

/* The leaves of what `headers` begins; they refer to `src`. */
void tree_build(struct arena *arena, struct source *src,
    const struct headers *headers, const struct mime_limits *limits,
    struct tree *tree);

/* Sets type, name and role of a leaf made elsewhere that stands alone. */
void tree_add(struct arena *arena, struct tree *tree, struct leaf *leaf);

/* message/rfc822 and its kin. */
bool type_is_message(const char *type);

#endif
