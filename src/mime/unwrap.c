/*
 * unwrap.c - leaves that hold other parts in formats that are not MIME's own.
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * What is wrapped is decoded into memory, up to a limit, and its leaves are put
 * behind the wrapper, so that all later steps see them as any others.  They may
 * be wrappers in turn, to a depth.  The wrapper itself stays an attachment, by
 * which the bytes can be had; what cannot be opened is nothing else.
 */
#include "config.h"

#include "mime/unwrap.h"

#include "base/text.h"
#include "base/xmem.h"
#include "mime/attachment.h"
#include "mime/charset.h"
#include "mime/cms.h"
#include "mime/html.h"
#include "mime/leaf.h"
#include "mime/param.h"
#include "mime/rtf.h"
#include "mime/tnef.h"

#define DEPTH_MAX 4

struct held {
	struct buf bytes;
	struct held *next;
};

struct unwrapper {
	struct arena *arena;
	const struct mime_limits *limits;
	struct tree *tree;
	size_t left; /* bytes that may yet be decoded */
};

static void
unwrap_set_reason(struct unwrapper *u, const char *reason)
{
	if (u->tree->reason == NULL)
		u->tree->reason = reason;
}

void
unwrap_release(struct tree *tree)
{
	struct held *held;

	for (held = tree->held; held != NULL; held = held->next)
		buf_release(&held->bytes);
	tree->held = NULL;
}

/* Bytes that live as long as the tree. */
static struct source *
unwrap_hold(struct unwrapper *u, struct buf *bytes)
{
	struct held *held = ARENA_NEW(u->arena, struct held);
	struct source *src = ARENA_NEW(u->arena, struct source);

	held->bytes = *bytes;
	held->next = u->tree->held;
	u->tree->held = held;
	*src = (struct source){ .fd = -1, .size = bytes->len,
		.mem = (const unsigned char *)buf_str(bytes) };
	return src;
}

static struct buf
unwrap_decode(struct unwrapper *u, const struct leaf *leaf)
{
	struct pieces pieces;
	struct buf out = BUF_INIT;
	const char *p;
	size_t len;

	pieces_init(&pieces, leaf);
	while (pieces_next(&pieces, SOURCE_CHUNK, &p, &len)) {
		if (len > u->left) {
			unwrap_set_reason(u, "what is wrapped in S/MIME or "
			    "TNEF is too long; its beginning was read");
			len = u->left;
		}
		buf_add(&out, p, len);
		u->left -= len;
		if (u->left == 0)
			break;
	}
	pieces_release(&pieces);
	return out;
}

/* Puts the leaves of `sub` behind `leaf`. */
static void
unwrap_insert(struct unwrapper *u, struct leaf *leaf, struct tree *sub)
{
	struct leaf *l;

	for (l = sub->first; l != NULL; l = l->next) {
		l->depth = leaf->depth + 1;
		if (l->group != 0)
			l->group += u->tree->n_groups;
		/* Beside another form of the text it is the second choice. */
		if (leaf->group != 0) {
			l->group = leaf->group;
			l->is_alternative |= l->is_text;
		}
	}
	if (sub->first == NULL)
		return;
	*sub->last = leaf->next;
	if (leaf->next == NULL)
		u->tree->last = sub->last;
	leaf->next = sub->first;
	u->tree->n += sub->n;
	u->tree->n_groups += sub->n_groups;
	if (u->tree->charset == CHARSET_GUESSED)
		u->tree->charset = sub->charset;
	unwrap_set_reason(u, sub->reason);
}

/* A message or part that stands in `src`. */
static void
unwrap_insert_entity(struct unwrapper *u, struct leaf *leaf, struct source *src)
{
	struct mime_limits limits = *u->limits;
	struct headers h;
	struct tree sub;

	limits.parts -= u->tree->n < limits.parts ? u->tree->n : limits.parts;
	headers_scan(u->arena, src, 0, src->size, limits.address_bytes,
	    limits.header_bytes, &h);
	tree_build(u->arena, src, &h, &limits, &sub);
	unwrap_insert(u, leaf, &sub);
}

/* --- S/MIME -------------------------------------------------------------- */

static bool
is_smime(const struct leaf *leaf)
{
	return strcmp(leaf->type, "application/pkcs7-mime") == 0 ||
	    strcmp(leaf->type, "application/x-pkcs7-mime") == 0 ||
	    leaf_is_octets(leaf, ".p7m");
}

static void
unwrap_smime(struct unwrapper *u, struct leaf *leaf)
{
	struct buf bytes = unwrap_decode(u, leaf);
	struct source *src;
	size_t len = 0;

	if (bytes.len == 0)
		return;
	switch (cms_open((unsigned char *)bytes.data, bytes.len, &len)) {
	case CMS_SIGNED:
		bytes.len = len;
		if (len > 0)
			leaf->role = ROLE_SIGNATURE;
		break;
	case CMS_COMPRESSED:
		unwrap_set_reason(u, "an S/MIME part is compressed; "
		    "what it holds is not read");
		break;
	case CMS_ENCRYPTED:
	case CMS_NONE:
		break;
	}
	if (len == 0) {
		buf_release(&bytes);
		return;
	}
	src = unwrap_hold(u, &bytes);
	unwrap_insert_entity(u, leaf, src);
}

/* --- TNEF ---------------------------------------------------------------- */

static bool
is_tnef(const struct leaf *leaf)
{
	return strcmp(leaf->type, "application/ms-tnef") == 0 ||
	    strcmp(leaf->type, "application/vnd.ms-tnef") == 0 ||
	    leaf_is_octets(leaf, "winmail.dat");
}

static enum charset
codepage_charset(struct unwrapper *u, const struct tnef_bytes *b,
    uint32_t codepage)
{
	const char *label;

	if (b->is_utf16)
		return CHARSET_UTF16LE;
	if (codepage == 65001)
		return CHARSET_UTF8;
	if (codepage == 0)
		return CHARSET_GUESSED;
	label = arena_printf(u->arena, codepage >= 28591 && codepage <= 28605
	    ? "iso-8859-%u" : codepage == 20127 ? "us-ascii" : codepage ==
	    50220 ? "iso-2022-jp" : codepage == 20866 ? "koi8-r" : codepage ==
	    932 ? "shift_jis" : codepage == 936 ? "gbk" : codepage == 949 ?
	    "euc-kr" : codepage == 950 ? "big5" : "windows-%u",
	    codepage >= 28591 ? codepage - 28590 : codepage);
	return charset_find(label, strlen(label));
}

static const char *
tnef_string(struct unwrapper *u, const struct tnef *t,
    const struct tnef_bytes *b)
{
	const char *text;
	size_t len;

	if (b->p == NULL)
		return NULL;
	text = charset_convert(u->arena, codepage_charset(u, b, t->codepage),
	    (const char *)b->p, b->len, &len);
	return arena_strndup(u->arena, text, len);
}

/* A leaf of bytes that need no decoding. */
static struct leaf *
tnef_add_leaf(struct unwrapper *u, struct tree *sub, struct source *src,
    const char *type, const char *name)
{
	struct leaf *leaf = ARENA_NEW(u->arena, struct leaf);

	leaf->src = src;
	leaf->end = src->size;
	leaf->type = type;
	leaf->name = name;
	tree_add(u->arena, sub, leaf);
	return leaf;
}

static void
tnef_add_text(struct unwrapper *u, struct tree *sub, const char *type,
    const char *text, size_t len)
{
	struct source *src;
	struct buf copy = BUF_INIT;
	struct leaf *leaf;

	buf_add(&copy, text, len);
	src = unwrap_hold(u, &copy);
	leaf = tnef_add_leaf(u, sub, src, type, NULL);
	/* The text beside the TNEF part is the same, mostly. */
	leaf->is_second = true;
	leaf->is_listed = false;
}

static void
tnef_add_rtf(struct unwrapper *u, struct tree *sub, const struct tnef_bytes *b)
{
	struct buf rtf = BUF_INIT, text = BUF_INIT;
	size_t max = u->limits->text_bytes;

	if (!rtf_decompress(&rtf, b->p, b->len, 8 * max))
		unwrap_set_reason(u, "the text in winmail.dat is not readable");
	rtf_to_text(u->arena, &text, buf_str(&rtf), rtf.len, max);
	if (text.len > 0)
		tnef_add_text(u, sub, "text/plain", text.data, text.len);
	buf_release(&rtf);
	buf_release(&text);
}

/* The best of its texts. */
static void
tnef_add_best_text(struct unwrapper *u, struct tree *sub, const struct tnef *t)
{
	const struct tnef_bytes *b = t->body.len > 0 ? &t->body : &t->html;
	uint32_t codepage = t->codepage;
	const char *text;
	size_t len;

	if (b->len == 0) {
		if (t->rtf.p != NULL)
			tnef_add_rtf(u, sub, &t->rtf);
		return;
	}
	if (b == &t->html && t->html_codepage != 0)
		codepage = t->html_codepage;
	text = charset_convert(u->arena, codepage_charset(u, b, codepage),
	    (const char *)b->p, b->len, &len);
	tnef_add_text(u, sub, b == &t->html ? "text/html" : "text/plain", text,
	    len);
}

static void
tnef_add_file(struct unwrapper *u, struct tree *sub, struct source *tnef_src,
    const struct tnef *t, const struct tnef_file *f)
{
	struct source *src = ARENA_NEW(u->arena, struct source);
	const char *name = tnef_string(u, t, &f->name);
	const char *type = tnef_string(u, t, &f->mime_type);
	const char *cid = tnef_string(u, t, &f->content_id);
	struct field field = { type, type == NULL ? 0 : strlen(type) };
	struct leaf *leaf;

	*src = (struct source){ .fd = -1, .size = f->data.len,
		.mem = f->data.p == NULL ? tnef_src->mem : f->data.p };
	if (type != NULL)
		type = param_type(u->arena, &field);
	leaf = tnef_add_leaf(u, sub, src,
	    type == NULL ? "application/octet-stream" : type,
	    name == NULL ? NULL : attachment_clean_name(u->arena, name));
	if (cid != NULL)
		leaf->headers.fields[HEADER_CONTENT_ID] = (struct field){ cid,
			strlen(cid) };
	leaf->role = ROLE_FILE;
	leaf->is_text = false;
	leaf->is_listed = true;
}

static bool
tree_has_text(const struct tree *tree)
{
	const struct leaf *leaf;

	for (leaf = tree->first; leaf != NULL; leaf = leaf->next)
		if (leaf->is_text)
			return true;
	return false;
}

static void
unwrap_tnef(struct unwrapper *u, struct leaf *leaf)
{
	struct tree sub = { .last = &sub.first };
	struct buf bytes = unwrap_decode(u, leaf);
	const struct tnef_file *file;
	struct source *src;
	struct tnef t;

	if (!tnef_read(u->arena, (const unsigned char *)buf_str(&bytes),
	    bytes.len, &t)) {
		if (!tree_has_text(u->tree))
			unwrap_set_reason(u, "winmail.dat is no TNEF; "
			    "it was not read");
		buf_release(&bytes);
		return;
	}
	src = unwrap_hold(u, &bytes);
	tnef_add_best_text(u, &sub, &t);
	for (file = t.files; file != NULL; file = file->next)
		tnef_add_file(u, &sub, src, &t, file);
	if (sub.n > 0)
		leaf->role = ROLE_SIGNATURE; /* its files count, not itself */
	if (t.is_cut && (sub.n > 0 || !tree_has_text(u->tree)))
		unwrap_set_reason(u,
		    "winmail.dat is broken; its beginning was read");
	unwrap_insert(u, leaf, &sub);
}

/* --- pieces -------------------------------------------------------------- */

static void
unwrap_partial(struct unwrapper *u, struct leaf *leaf)
{
	const char *number, *ignored;
	struct source *src = leaf->src;
	struct headers h;
	struct tree sub;
	size_t len;

	unwrap_set_reason(u, "it is one piece of a message sent in pieces");
	number = parameter_bytes(u->arena,
	    &leaf->headers.fields[HEADER_CONTENT_TYPE], "number", &len,
	    &ignored);
	if (number == NULL || strcmp(number, "1") != 0)
		return;
	headers_scan(u->arena, src, leaf->start, leaf->end,
	    u->limits->address_bytes, u->limits->header_bytes, &h);
	tree_build(u->arena, src, &h, u->limits, &sub);
	unwrap_insert(u, leaf, &sub);
}

/* ------------------------------------------------------------------------- */

void
unwrap(struct arena *arena, const struct mime_limits *limits,
    struct tree *tree)
{
	struct unwrapper u = { .arena = arena, .limits = limits, .tree = tree,
		.left = limits->wrapped_bytes };
	struct leaf *leaf;

	for (leaf = tree->first; leaf != NULL; leaf = leaf->next) {
		if (leaf->is_text || leaf->depth >= DEPTH_MAX || u.left == 0)
			continue;
		if (is_smime(leaf))
			unwrap_smime(&u, leaf);
		else if (is_tnef(leaf))
			unwrap_tnef(&u, leaf);
		else if (strcmp(leaf->type, "message/partial") == 0)
			unwrap_partial(&u, leaf);
	}
}
