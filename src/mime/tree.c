/*
 * tree.c - the leaves of a message.
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * A message that is no multipart is its own leaf and never meets gmime.  For
 * a multipart gmime finds the parts (scan.c has made sure that it may);
 * embedded messages are registered as plain parts, so that neither their depth
 * nor their addresses can hurt.  gmime's objects do not leave this file.  What
 * each leaf is for, role.c says.
 */
#include "config.h"

#include "mime/tree.h"

#include "mime/attachment.h"
#include "mime/param.h"
#include "mime/role.h"
#include "mime/scan.h"

#ifdef MAILHERD_SANITIZED
#include <sanitizer/lsan_interface.h>
#endif

struct builder {
	struct arena *arena;
	struct source *src;
	const struct headers *headers; /* those of the whole */
	const struct mime_limits *limits;
	struct tree *tree;
	unsigned group;
	const char *apple_name; /* in the first half of an AppleDouble */
};

void
tree_init(void)
{
	static const char *const messages[] = { "rfc822", "rfc2822", "global",
		"news", "partial" };
	size_t i;

#ifdef MAILHERD_SANITIZED
	__lsan_disable(); /* gmime forgets what is registered anew */
#endif
	g_mime_init();
	for (i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
		g_mime_object_register_type("message", messages[i],
		    GMIME_TYPE_PART);
#ifdef MAILHERD_SANITIZED
	__lsan_enable();
#endif
}

static void
add_leaf(struct builder *b, struct leaf *leaf, const struct spot *spot)
{
	const struct field *f = leaf->headers.fields;

	headers_to_utf8(b->arena, &leaf->headers, b->tree->charset);
	if (leaf->type == NULL && f[HEADER_CONTENT_TYPE].value != NULL)
		leaf->type = param_type(b->arena, &f[HEADER_CONTENT_TYPE]);
	if (leaf->type == NULL)
		leaf->type = spot->parent == KIND_DIGEST ? "message/rfc822"
		    : "text/plain";
	if (leaf->name == NULL)
		leaf->name = attachment_name(b->arena,
		    &f[HEADER_CONTENT_TYPE], &f[HEADER_DISPOSITION]);
	if (spot->parent == KIND_APPLEDOUBLE) {
		if (leaf->name == NULL && !spot->is_root)
			leaf->name = b->apple_name;
		b->apple_name = leaf->name;
	}
	leaf->is_related = spot->parent == KIND_RELATED && !spot->is_root;
	leaf->src = b->src;
	leaf->group = b->group;
	leaf->role = leaf->is_raw ? ROLE_PLAIN
	    : role_of(b->arena, leaf, spot, b->tree->n == 0);
	leaf->is_text = leaf->role == ROLE_PLAIN || leaf->role == ROLE_HTML;
	leaf->is_listed = !leaf->is_text && leaf->role != ROLE_CONTROL;
	if (leaf->is_text && b->tree->charset == CHARSET_GUESSED)
		b->tree->charset = param_charset(b->arena,
		    &f[HEADER_CONTENT_TYPE]);
	*b->tree->last = leaf;
	b->tree->last = &leaf->next;
	b->tree->n++;
}

void
tree_add(struct arena *arena, struct tree *tree, struct leaf *leaf)
{
	struct builder b = { .arena = arena, .src = leaf->src, .tree = tree };
	struct spot spot = { .parent = KIND_MIXED, .is_root = true };

	add_leaf(&b, leaf, &spot);
}

/* A multipart without parts is shown as it stands. */
static struct leaf *
raw_leaf(struct builder *b)
{
	struct leaf *leaf = ARENA_NEW(b->arena, struct leaf);

	leaf->type = "text/plain";
	leaf->is_raw = true;
	return leaf;
}

/* --- gmime's tree -------------------------------------------------------- */

static void
copy_headers(struct builder *b, GMimeObject *object, struct headers *h)
{
	GMimeHeaderList *list = g_mime_object_get_header_list(object);
	int i, n = g_mime_header_list_get_count(list);
	GMimeHeader *header;
	const char *name, *raw;
	enum header_id id;

	for (i = 0; i < n; i++) {
		header = g_mime_header_list_get_header_at(list, i);
		name = g_mime_header_get_name(header);
		id = header_id(name, strlen(name));
		if (id == HEADER_COUNT || h->fields[id].value != NULL)
			continue;
		raw = g_mime_header_get_raw_value(header);
		if (raw != NULL)
			h->fields[id] = header_unfold(b->arena, raw,
			    strlen(raw));
	}
}

static void
add_part(struct builder *b, GMimeObject *object, const struct spot *spot)
{
	struct leaf *leaf = ARENA_NEW(b->arena, struct leaf);
	GMimeDataWrapper *content = NULL;
	GMimeStream *stream = NULL;

	copy_headers(b, object, &leaf->headers);
	if (GMIME_IS_PART(object))
		content = g_mime_part_get_content((GMimePart *)object);
	if (content != NULL)
		stream = g_mime_data_wrapper_get_stream(content);
	if (stream == NULL ||
	    view_stream_range(stream, &leaf->start, &leaf->end) == -1)
		leaf->start = leaf->end = 0;
	add_leaf(b, leaf, spot);
}

/* A multipart that holds no part: what stands in front of parts. */
static void
add_prologue(struct builder *b, GMimeMultipart *multipart,
    const struct spot *spot)
{
	const char *text = g_mime_multipart_get_prologue(multipart);
	struct leaf *leaf;
	struct source *src;

	if (text == NULL)
		return;
	src = ARENA_NEW(b->arena, struct source);
	*src = (struct source){ .fd = -1, .size = strlen(text),
		.mem = (unsigned char *)arena_strdup(b->arena, text) };
	leaf = raw_leaf(b);
	leaf->end = src->size;
	add_leaf(b, leaf, spot);
	leaf->src = src;
}

/*
 * One form of several is the text: the first that has a plain part, else the
 * last with HTML.  The texts of the others become alternatives.
 */
static void
tree_choose(struct leaf **starts, unsigned n)
{
	unsigned i, best = n;
	bool best_is_plain = false;
	struct leaf *leaf;

	for (i = 0; i < n; i++) {
		for (leaf = starts[i]; leaf != NULL && leaf != starts[i + 1];
		    leaf = leaf->next) {
			if (!leaf->is_text || best_is_plain ||
			    leaf->is_alternative)
				continue;
			best = i;
			best_is_plain = leaf->role == ROLE_PLAIN;
		}
	}
	for (i = 0; i < n; i++)
		for (leaf = starts[i]; i != best && leaf != NULL &&
		    leaf != starts[i + 1]; leaf = leaf->next)
			leaf->is_alternative |= leaf->is_text;
}

/* --- the root of a multipart/related ------------------------------------- */

static const char *
without_brackets(const char *id, size_t *len)
{
	if (*len > 0 && *id == '<') {
		id++;
		--*len;
	}
	if (*len > 0 && id[*len - 1] == '>')
		--*len;
	return id;
}

static bool
is_same_id(const char *a, size_t a_len, const char *b, size_t b_len)
{
	a = without_brackets(a, &a_len);
	b = without_brackets(b, &b_len);
	return a_len == b_len && memcmp(a, b, a_len) == 0;
}

/* How much a part looks like the root: by its id, as text, not at all. */
static int
root_rank(struct builder *b, GMimeObject *part, const char *start,
    size_t start_len)
{
	struct headers h = { 0 };
	const struct field *id = &h.fields[HEADER_CONTENT_ID];
	const char *type;
	enum leaf_role role;

	copy_headers(b, part, &h);
	if (start != NULL && id->value != NULL &&
	    is_same_id(start, start_len, id->value, id->len))
		return 2;
	type = param_type(b->arena, &h.fields[HEADER_CONTENT_TYPE]);
	return role_is_multipart(type) || role_is_readable(type, &role) ? 1 : 0;
}

/* "start" names it; else it is the first, unless that is no text. */
static unsigned
related_root(struct builder *b, GMimeMultipart *multipart,
    const struct field *type)
{
	unsigned i, n = (unsigned)g_mime_multipart_get_count(multipart);
	unsigned root = 0;
	const char *start, *ignored;
	int rank, best = 0;
	size_t len;

	start = parameter_bytes(b->arena, type, "start", &len, &ignored);
	for (i = 0; i < n && best < (start == NULL ? 1 : 2); i++) {
		rank = root_rank(b, g_mime_multipart_get_part(multipart,
		    (int)i), start, len);
		if (rank > best) {
			best = rank;
			root = i;
		}
	}
	return root;
}

/* ------------------------------------------------------------------------- */

static void tree_walk(
    struct builder *b, GMimeObject *object, const struct spot *spot);

static void
walk_parts(struct builder *b, GMimeMultipart *multipart, enum kind kind,
    unsigned root, unsigned depth)
{
	unsigned i, n = (unsigned)g_mime_multipart_get_count(multipart);
	struct leaf **starts, ***marks;

	marks = ARENA_ARRAY(b->arena, struct leaf **, n + 1);
	for (i = 0; i < n; i++) {
		struct spot spot = { .parent = kind, .is_root = i == root,
			.depth = depth + 1 };

		marks[i] = b->tree->last;
		tree_walk(
		    b, g_mime_multipart_get_part(multipart, (int)i), &spot);
	}
	marks[n] = b->tree->last;
	if (kind != KIND_ALTERNATIVE)
		return;
	starts = ARENA_ARRAY(b->arena, struct leaf *, n + 1);
	for (i = 0; i <= n; i++)
		starts[i] = *marks[i];
	tree_choose(starts, n);
}

static void
walk_multipart(struct builder *b, GMimeMultipart *multipart,
    const struct spot *spot)
{
	unsigned n = (unsigned)g_mime_multipart_get_count(multipart);
	unsigned root = 0;
	const struct field *type;
	struct headers h = { 0 };
	bool is_outer;
	enum kind kind;

	/* Of the whole gmime does not know the header. */
	if (spot->depth > 1)
		copy_headers(b, (GMimeObject *)multipart, &h);
	else
		h = *b->headers;
	type = &h.fields[HEADER_CONTENT_TYPE];
	kind = role_kind(param_type(b->arena, type));
	if (n == 0) {
		add_prologue(b, multipart, spot);
		return;
	}
	if (kind == KIND_RELATED)
		root = related_root(b, multipart, type);
	if (kind == KIND_APPLEDOUBLE && n == 1)
		kind = KIND_MIXED;
	is_outer = kind == KIND_ALTERNATIVE && b->group == 0;
	if (is_outer)
		b->group = ++b->tree->n_groups;
	walk_parts(b, multipart, kind, root, spot->depth);
	if (is_outer)
		b->group = 0;
}

static void
tree_walk(struct builder *b, GMimeObject *object, const struct spot *spot)
{
	if (spot->depth > b->limits->depth)
		b->tree->reason = "multiparts are nested too deeply";
	else if (GMIME_IS_MULTIPART(object))
		walk_multipart(b, (GMimeMultipart *)object, spot);
	else
		add_part(b, object, spot);
}

/* --- the message --------------------------------------------------------- */

/* The only header that gmime sees of a message. */
static const char *
make_head(struct arena *arena, const char *type, const char *boundary)
{
	char *escaped = arena_alloc(arena, strlen(boundary) * 2 + 1);
	size_t n = 0;

	for (; *boundary != '\0'; boundary++) {
		if (*boundary == '"' || *boundary == '\\')
			escaped[n++] = '\\';
		escaped[n++] = *boundary;
	}
	escaped[n] = '\0';
	return arena_printf(arena, "Content-Type: %s; boundary=\"%s\"\n\n",
	    type, escaped);
}

/* false: gmime sees no part in it. */
static bool
tree_parse(struct builder *b, const struct view *view)
{
	GMimeStream *stream = view_stream_new(view);
	GMimeParser *parser = g_mime_parser_new_with_stream(stream);
	struct spot spot = { .parent = KIND_MIXED, .is_root = true,
		.depth = 1 };
	GMimeObject *object;
	bool has_parts;

	g_mime_parser_set_persist_stream(parser, TRUE);
	object = g_mime_parser_construct_part(parser, NULL);
	has_parts = object != NULL && GMIME_IS_MULTIPART(object) &&
	    g_mime_multipart_get_count((GMimeMultipart *)object) > 0;
	if (has_parts)
		tree_walk(b, object, &spot);
	g_clear_object(&object);
	g_object_unref(parser);
	g_object_unref(stream);
	return has_parts;
}

static void
add_whole(struct builder *b, const struct headers *headers, bool is_raw)
{
	struct leaf *leaf = is_raw ? raw_leaf(b)
	    : ARENA_NEW(b->arena, struct leaf);
	struct spot spot = { .parent = KIND_MIXED, .is_root = true };

	leaf->headers = *headers;
	leaf->start = headers->body;
	leaf->end = headers->end;
	add_leaf(b, leaf, &spot);
}

/* NULL: none that could stand on a line. */
static const char *
read_boundary(struct arena *arena, const struct field *type)
{
	const char *boundary, *ignored;
	size_t len;

	boundary = parameter_bytes(arena, type, "boundary", &len, &ignored);
	while (boundary != NULL && len > 0 && boundary[len - 1] == ' ')
		len--; /* no delimiter line ends in blanks */
	return boundary == NULL || len == 0 ? NULL
	    : arena_strndup(arena, boundary, len);
}

/* The first half of an AppleDouble file that stands beside the second. */
static void
unlist_apple_halves(struct tree *tree)
{
	struct leaf *leaf;

	for (leaf = tree->first; leaf != NULL; leaf = leaf->next)
		if (strcmp(leaf->type, "application/applefile") == 0 &&
		    leaf->next != NULL && leaf->name != NULL &&
		    leaf->next->name != NULL &&
		    strcmp(leaf->name, leaf->next->name) == 0) {
			leaf->role = ROLE_CONTROL;
			leaf->is_listed = false;
		}
}

void
tree_build(struct arena *arena, struct source *src,
    const struct headers *headers, const struct mime_limits *limits,
    struct tree *tree)
{
	struct builder b = { .arena = arena, .src = src, .headers = headers,
		.limits = limits, .tree = tree };
	const struct field *field = &headers->fields[HEADER_CONTENT_TYPE];
	const char *type = param_type(arena, field), *boundary = NULL;
	struct view view = { .src = src, .begin = headers->body,
		.end = headers->end };

	bool has_parts = false;

	*tree = (struct tree){ .last = &tree->first };
	if (role_is_multipart(type))
		boundary = read_boundary(arena, field);
	if (boundary != NULL) {
		tree->reason = scan_body(arena, &view, boundary, limits);
		view.head = make_head(arena, type, boundary);
		view.head_len = strlen(view.head);
		if (view.begin < view.end)
			has_parts = tree_parse(&b, &view);
	}
	if (!has_parts)
		add_whole(&b, headers, role_is_multipart(type));
	unlist_apple_halves(tree);
}
