/*
 * role.c - what a leaf is for.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * A leaf is what its type, its disposition and its place in the multipart make
 * of it.  Types are lists here, nowhere else.
 */
#include "mime/role.h"

#include "mime/param.h"

enum kind
role_kind(const char *type)
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
		{ "multipart/digest", KIND_DIGEST },
		{ "multipart/appledouble", KIND_APPLEDOUBLE },
		{ "multipart/x-appledouble", KIND_APPLEDOUBLE },
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].type, type) == 0)
			return kinds[i].kind;
	return KIND_MIXED;
}

bool
role_is_multipart(const char *type)
{
	return strncmp(type, "multipart/", 10) == 0;
}

static bool
is_one_of(const char *type, const char *const *types)
{
	for (; *types != NULL; types++)
		if (strcmp(*types, type) == 0)
			return true;
	return false;
}

bool
type_is_message(const char *type)
{
	static const char *const types[] = { "message/rfc822",
		"message/rfc2822", "message/global", "message/news",
		"message/x-rfc822", NULL };

	return is_one_of(type, types);
}

/* A text that nobody reads as it is. */
static bool
is_data(const char *type)
{
	static const char *const types[] = { "text/calendar", "text/css",
		"text/csv", "text/directory", "text/javascript",
		"text/rfc822-headers", "text/rtf", "text/tab-separated-values",
		"text/vcard", "text/watch-html", "text/x-amp-html",
		"text/x-vcalendar", "text/x-vcard", "text/xml", NULL };

	return is_one_of(type, types);
}

bool
role_is_readable(const char *type, enum leaf_role *role_r)
{
	static const char *const plain[] = { "text/plain", "text/enriched",
		"text/richtext", "text/markdown", "text/x-markdown", NULL };
	static const char *const html[] = { "text/html",
		"application/xhtml+xml", NULL };

	*role_r = is_one_of(type, html) ? ROLE_HTML : ROLE_PLAIN;
	return *role_r == ROLE_HTML || is_one_of(type, plain);
}

static bool
is_signature(const char *type)
{
	static const char *const types[] = { "application/pgp-signature",
		"application/pkcs7-signature",
		"application/x-pkcs7-signature", NULL };

	return is_one_of(type, types);
}

enum leaf_role
role_of(struct arena *arena, struct leaf *leaf, const struct spot *spot,
    bool is_first)
{
	const char *word = param_word(arena,
	    &leaf->headers.fields[HEADER_DISPOSITION]);
	bool is_file = strcmp(word, "attachment") == 0 ||
	    (leaf->name != NULL && !is_first &&
	    !(spot->parent == KIND_RELATED && spot->is_root));
	enum leaf_role role;

	if (spot->parent == KIND_ENCRYPTED)
		return spot->is_root ? ROLE_CONTROL : ROLE_FILE;
	if (is_signature(leaf->type) ||
	    (spot->parent == KIND_SIGNED && !spot->is_root))
		return ROLE_SIGNATURE;
	if (spot->parent == KIND_REPORT && !spot->is_root)
		return ROLE_REPORT;
	if (spot->parent == KIND_APPLEDOUBLE)
		return spot->is_root ? ROLE_CONTROL : ROLE_FILE;
	is_file |= leaf->is_related;
	if (role_is_readable(leaf->type, &role))
		return is_file ? ROLE_FILE : role;
	if (strncmp(leaf->type, "text/", 5) != 0)
		return ROLE_FILE;
	/* text/x-amp-html and the like: other forms of the text. */
	if (spot->parent == KIND_ALTERNATIVE && leaf->name == NULL &&
	    strcmp(leaf->type, "text/calendar") != 0) {
		leaf->is_second = !is_data(leaf->type);
		return ROLE_CONTROL;
	}
	return is_file || leaf->name != NULL || is_data(leaf->type)
	    ? ROLE_FILE : ROLE_PLAIN; /* RFC 2046 4.1.4 */
}
