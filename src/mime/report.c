/*
 * report.c - which message a report is about.
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * A report seldom says in its own header what it answers: then the message or
 * the headers it returns do (RFC 3462), or a field of the machine's part (RFC
 * 8098, and an X- field of some servers in RFC 3464), and all are one
 * conversation.  Nothing of a report is changed but its references.
 */
#include "config.h"

#include "mime/report.h"

#include "mime/ids.h"
#include "mime/leaf.h"

static bool
is_about_another(const char *type)
{
	static const char *const types[] = { "message/delivery-status",
		"message/global-delivery-status",
		"message/disposition-notification",
		"message/global-disposition-notification",
		"message/feedback-report", "message/tracking-status" };
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i], type) == 0)
			return true;
	return false;
}

static bool
is_returned(const char *type)
{
	return type_is_message(type) ||
	    strcmp(type, "text/rfc822-headers") == 0 ||
	    strcmp(type, "text/rfc822") == 0 ||
	    strcmp(type, "message/rfc822-headers") == 0 ||
	    strcmp(type, "message/global-headers") == 0;
}

/* The header that a leaf holds, whatever it is encoded with. */
static void
report_read_header(struct arena *arena, const struct leaf *leaf,
    const struct mime_limits *limits, struct headers *h)
{
	struct source decoded = { .fd = -1 };
	size_t len;

	if (leaf_encoding(leaf) == ENCODING_NONE) {
		headers_scan(arena, leaf->src, leaf->start, leaf->end, 0,
		    limits->header_bytes, h);
		return;
	}
	decoded.mem = (const unsigned char *)leaf_bytes(arena, leaf,
	    limits->header_bytes, &len);
	decoded.size = len;
	headers_scan(arena, &decoded, 0, len, 0, limits->header_bytes, h);
}

static void
report_add_reference(struct arena *arena, struct content *c, const char *id)
{
	const char **references;
	size_t i;

	if (id == NULL ||
	    (c->message_id != NULL && strcmp(id, c->message_id) == 0))
		return;
	for (i = 0; i < c->n_references; i++)
		if (strcmp(c->references[i], id) == 0)
			return;
	references = ARENA_ARRAY(arena, const char *, c->n_references + 1);
	if (c->n_references > 0)
		memcpy(references, c->references,
		    c->n_references * sizeof(*references));
	references[c->n_references++] = id;
	c->references = references;
}

/* By its structure, or by a part that nothing but a report has. */
static bool
is_report(const struct tree *tree)
{
	const struct leaf *leaf;

	for (leaf = tree->first; leaf != NULL; leaf = leaf->next)
		if (leaf->role == ROLE_REPORT || is_about_another(leaf->type))
			return true;
	return false;
}

/*
 * A server that returns the message in its own text, without MIME: the header
 * stands behind a line of dashes (qmail, Postfix before 2.0, Exim).
 */
static const char *
report_find_id(struct arena *arena, const struct headers *headers,
    const struct buf *text)
{
	static const char field_name[] = "\nmessage-id:";
	const struct field *from = &headers->fields[HEADER_FROM];
	const char *p = buf_str(text), *end = p + text->len, *eol;
	size_t len = sizeof(field_name) - 1;
	struct field f;

	if (from->value == NULL || strcasestr(from->value, "mailer-daemon") ==
	    NULL || memmem(p, text->len, "\n--", 3) == NULL)
		return NULL;
	for (; p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL;
	    p++) {
		if ((size_t)(end - p) <= len ||
		    strncasecmp(p, field_name, len) != 0)
			continue;
		p += len;
		eol = memchr(p, '\n', (size_t)(end - p));
		f = header_unfold(arena, p,
		    (size_t)((eol == NULL ? end : eol) - p));
		return ids_own(arena, &f);
	}
	return NULL;
}

void
report_read(struct arena *arena, const struct tree *tree,
    const struct headers *headers, const struct mime_limits *limits,
    struct content *content, const struct buf *text)
{
	const char *named = NULL, *returned = NULL;
	const struct leaf *leaf;
	const struct field *f;
	struct headers h;

	if (!is_report(tree)) {
		report_add_reference(arena, content,
		    report_find_id(arena, headers, text));
		return;
	}
	for (leaf = tree->first; leaf != NULL; leaf = leaf->next) {
		if (leaf->is_text || leaf->depth > 0)
			continue;
		if (named == NULL && is_about_another(leaf->type)) {
			report_read_header(arena, leaf, limits, &h);
			f = h.fields;
			named = ids_own(arena, f[HEADER_ORIGINAL_ID].value !=
			    NULL ? &f[HEADER_ORIGINAL_ID]
				 : &f[HEADER_X_ORIGINAL_ID]);
		} else if (returned == NULL && is_returned(leaf->type)) {
			report_read_header(arena, leaf, limits, &h);
			returned = ids_own(arena,
			    &h.fields[HEADER_MESSAGE_ID]);
		}
	}
	report_add_reference(arena, content, named);
	report_add_reference(arena, content, returned);
}
