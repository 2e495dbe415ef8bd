/*
 * tree.c - the leaves of a message and what each is for.
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * A message that is no multipart is its own leaf and never meets gmime.  For
 * a multipart gmime finds the parts (scan.c has made sure that it may);
 * embedded messages are registered as plain parts, so that neither their depth
 * nor their addresses can hurt.  gmime's objects do not leave this file.
 */
#include "config.h"

#include "mime/tree.h"

#include "mime/attachment.h"
#include "mime/param.h"
#include "mime/scan.h"
#include "mime/stream.h"

#ifdef MAILHERD_SANITIZED
#include <sanitizer/lsan_interface.h>
#endif

/* What a multipart means for its children. */
enum kind { KIND_MIXED, KIND_ALTERNATIVE, KIND_RELATED, KIND_SIGNED,
	KIND_ENCRYPTED, KIND_REPORT };

struct builder {
	struct arena *arena;
	const struct mime_limits *limits;
	struct tree *tree;
	const char *reason;
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

static enum kind
kind_of(const char *type)
{
	static const struct {
		const char *type;
		enum kind kind;
	} kinds[] = {
		{ "multipart/alternative", KIND_ALTERNATIVE },
		{ "multipart/related", KIND_RELATED },
		{ "multipart/signed", KIND_SIGNED },
		{ "multipart/encrypted", KIND_ENCRYPTED },
		{ "multipart/report", KIND_REPORT },
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].type, type) == 0)
			return kinds[i].kind;
	return KIND_MIXED;
}

static bool
is_multipart(const char *type)
{
	return strncmp(type, "multipart/", 10) == 0;
}

/* --- roles --------------------------------------------------------------- */

static bool
is_readable(const char *type, enum leaf_role *role_r)
{
	static const char *const plain[] = { "text/plain", "text/enriched",
		"text/richtext", "text/markdown", "text/x-markdown" };
	size_t i;

	*role_r = ROLE_HTML;
	if (strcmp(type, "text/html") == 0 ||
	    strcmp(type, "application/xhtml+xml") == 0)
		return true;
	*role_r = ROLE_PLAIN;
	for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (strcmp(plain[i], type) == 0)
			return true;
	return false;
}

static bool
is_signature(const char *type)
{
	return strcmp(type, "application/pgp-signature") == 0 ||
	    strcmp(type, "application/pkcs7-signature") == 0 ||
	    strcmp(type, "application/x-pkcs7-signature") == 0;
}

/* As a file beside the text, or by its place in the parent. */
static enum leaf_role
role_of(struct builder *b, const struct leaf *leaf, enum kind parent,
    unsigned index)
{
	const char *word = param_word(b->arena,
	    &leaf->headers.fields[HEADER_DISPOSITION]);
	bool is_first = b->tree->n == 0;
	enum leaf_role role;

	if (parent == KIND_ENCRYPTED)
		return index == 0 ? ROLE_CONTROL : ROLE_FILE;
	if (is_signature(leaf->type) || (parent == KIND_SIGNED && index > 0))
		return ROLE_SIGNATURE;
	if (parent == KIND_REPORT && index > 0)
		return ROLE_REPORT;
	if (is_readable(leaf->type, &role)) {
		if (strcmp(word, "attachment") == 0 ||
		    (leaf->name != NULL && !is_first) ||
		    (parent == KIND_RELATED && index > 0))
			return ROLE_FILE;
		return role;
	}
	/* text/x-amp-html and the like: other forms of the text. */
	if (parent == KIND_ALTERNATIVE && leaf->name == NULL &&
	    strncmp(leaf->type, "text/", 5) == 0 &&
	    strcmp(leaf->type, "text/calendar") != 0)
		return ROLE_CONTROL;
	return ROLE_FILE;
}

static struct leaf *
new_leaf(struct builder *b)
{
	struct leaf *leaf = ARENA_NEW(b->arena, struct leaf);

	return leaf;
}

static void
add_leaf(struct builder *b, struct leaf *leaf, enum kind parent,
    unsigned index)
{
	const struct field *f = leaf->headers.fields;

	headers_to_utf8(b->arena, &leaf->headers, b->tree->charset);
	if (leaf->type == NULL)
		leaf->type = f[HEADER_CONTENT_TYPE].value == NULL
		    ? "text/plain"
		    : param_type(b->arena, &f[HEADER_CONTENT_TYPE]);
	leaf->name = attachment_name(b->arena, &f[HEADER_CONTENT_TYPE],
	    &f[HEADER_DISPOSITION]);
	leaf->role = leaf->is_raw ? ROLE_PLAIN
	    : role_of(b, leaf, parent, index);
	leaf->is_text = leaf->role == ROLE_PLAIN || leaf->role == ROLE_HTML;
	leaf->is_listed = !leaf->is_text && leaf->role != ROLE_CONTROL;
	if (leaf->is_text && b->tree->charset == CHARSET_GUESSED)
		b->tree->charset = param_charset(b->arena,
		    &f[HEADER_CONTENT_TYPE]);
	*b->tree->last = leaf;
	b->tree->last = &leaf->next;
	b->tree->n++;
}

/* A multipart without parts is shown as it stands. */
static struct leaf *
raw_leaf(struct builder *b)
{
	struct leaf *leaf = new_leaf(b);

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
add_part(struct builder *b, GMimeObject *object, enum kind parent,
    unsigned index)
{
	struct leaf *leaf = new_leaf(b);
	GMimeDataWrapper *content = NULL;
	GMimeStream *stream = NULL;

	copy_headers(b, object, &leaf->headers);
	if (GMIME_IS_PART(object))
		content = g_mime_part_get_content((GMimePart *)object);
	if (content != NULL)
		stream = g_mime_data_wrapper_get_stream(content);
	if (stream == NULL ||
	    stream_range(stream, &leaf->start, &leaf->end) == -1)
		leaf->start = leaf->end = 0;
	add_leaf(b, leaf, parent, index);
}

/*
 * One form of several is the text: the first that has a plain part, else the
 * last with HTML.  The texts of the others become alternatives.
 */
static void
choose(struct leaf **starts, unsigned n)
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

static void walk(struct builder *b, GMimeObject *object, enum kind parent,
    unsigned index, unsigned depth);

static void
walk_multipart(struct builder *b, GMimeMultipart *multipart, unsigned depth)
{
	unsigned i, n = (unsigned)g_mime_multipart_get_count(multipart);
	struct leaf *leaf, **starts, ***marks;
	struct headers h = { 0 };
	const char *prologue, *type;
	enum kind kind;

	copy_headers(b, (GMimeObject *)multipart, &h);
	type = param_type(b->arena, &h.fields[HEADER_CONTENT_TYPE]);
	kind = kind_of(type);
	if (n == 0) {
		prologue = g_mime_multipart_get_prologue(multipart);
		if (prologue == NULL)
			return;
		leaf = raw_leaf(b);
		leaf->bytes = arena_strdup(b->arena, prologue);
		leaf->end = strlen(prologue);
		add_leaf(b, leaf, kind, 0);
		return;
	}
	marks = ARENA_ARRAY(b->arena, struct leaf **, n + 1);
	for (i = 0; i < n; i++) {
		marks[i] = b->tree->last;
		walk(b, g_mime_multipart_get_part(multipart, (int)i), kind, i,
		    depth + 1);
	}
	marks[n] = b->tree->last;
	if (kind != KIND_ALTERNATIVE)
		return;
	starts = ARENA_ARRAY(b->arena, struct leaf *, n + 1);
	for (i = 0; i <= n; i++)
		starts[i] = *marks[i];
	choose(starts, n);
}

static void
walk(struct builder *b, GMimeObject *object, enum kind parent, unsigned index,
    unsigned depth)
{
	if (depth > b->limits->depth) {
		b->reason = "multiparts are nested too deeply";
		return;
	}
	if (GMIME_IS_MULTIPART(object))
		walk_multipart(b, (GMimeMultipart *)object, depth);
	else
		add_part(b, object, parent, index);
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

static void
parse(struct builder *b, struct source *src, uint64_t begin, uint64_t end,
    const char *head)
{
	GMimeStream *stream = stream_new(src, begin, end, head, strlen(head));
	GMimeParser *parser = g_mime_parser_new_with_stream(stream);
	GMimeObject *object;

	g_mime_parser_set_persist_stream(parser, TRUE);
	object = g_mime_parser_construct_part(parser, NULL);
	if (object != NULL && GMIME_IS_MULTIPART(object) &&
	    g_mime_multipart_get_count((GMimeMultipart *)object) > 0)
		walk(b, object, KIND_MIXED, 0, 1);
	g_clear_object(&object);
	g_object_unref(parser);
	g_object_unref(stream);
}

static void
add_whole(struct builder *b, struct source *src,
    const struct headers *headers, bool is_raw)
{
	struct leaf *leaf = is_raw ? raw_leaf(b) : new_leaf(b);

	leaf->headers = *headers;
	leaf->start = headers->body;
	leaf->end = src->size;
	add_leaf(b, leaf, KIND_MIXED, 0);
}

const char *
tree_build(struct arena *arena, struct source *src,
    const struct headers *headers, const struct mime_limits *limits,
    struct tree *tree)
{
	struct builder b = { .arena = arena, .limits = limits, .tree = tree };
	const struct field *field = &headers->fields[HEADER_CONTENT_TYPE];
	uint64_t begin, end;
	const char *type = param_type(arena, field), *boundary, *ignored;
	size_t len;

	*tree = (struct tree){ .last = &tree->first };
	if (!is_multipart(type)) {
		add_whole(&b, src, headers, false);
		return NULL;
	}
	boundary = parameter_bytes(arena, field, "boundary", &len, &ignored);
	while (boundary != NULL && len > 0 && boundary[len - 1] == ' ')
		len--; /* no delimiter line ends in blanks */
	if (boundary == NULL || len == 0) {
		add_whole(&b, src, headers, true);
		return NULL;
	}
	boundary = arena_strndup(arena, boundary, len);
	b.reason = scan_body(src, headers->body, src->size, boundary, limits,
	    &begin, &end);
	if (b.reason != NULL)
		return b.reason;
	if (begin < end)
		parse(&b, src, begin, end, make_head(arena, type, boundary));
	if (tree->n == 0 && b.reason == NULL)
		add_whole(&b, src, headers, true);
	return b.reason;
}
