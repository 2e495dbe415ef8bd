/*
 * ids.c - Message-ID, In-Reply-To and References.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * Only <...> counts, and only what can be an id: In-Reply-To may hold prose,
 * lists may be glued or hold comments and commas (L178).  A value of nothing
 * but words with '@' is ids too.
 */
#include "config.h"

#include "mime/ids.h"

#include "base/text.h"
#include "mime/encoded.h"

#define IDS_MAX 5000

struct id {
	const char *p;
	size_t len;
};

/* "a@x, b@y": no brackets, but nothing else either. */
static bool
is_tokens(const struct field *f)
{
	const char *p = f->value, *end = p + f->len;
	size_t n = 0, len;

	if (memchr(p, '<', f->len) != NULL || memchr(p, '>', f->len) != NULL)
		return false;
	for (; p < end; p += len) {
		p += strspn(p, " \t,;");
		len = strcspn(p, " \t,;");
		if (len > 0 && memchr(p, '@', len) == NULL)
			return false;
		n += len > 0;
	}
	return n > 0;
}

static struct id
ids_trimmed(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return (struct id){ p, (size_t)(end - p) };
}

/* Behind the next <...>; NULL: there is none. */
static const char *
ids_next_angle(const char *p, const char *end, struct id *id)
{
	const char *close, *open;

	while (p < end && (open = memchr(p, '<', (size_t)(end - p))) != NULL) {
		close = memchr(open, '>', (size_t)(end - open));
		if (close == NULL)
			return NULL;
		/* "<a <b>": the inner one */
		while ((p = memchr(open + 1, '<', (size_t)(close - open - 1)))
		    != NULL)
			open = p;
		*id = ids_trimmed(open + 1, close);
		p = close + 1;
		if (id->len > 0)
			return p;
	}
	return NULL;
}

static const char *
ids_next_token(const char *p, const char *end, struct id *id)
{
	p += strspn(p, " \t,;");
	*id = (struct id){ p, strcspn(p, " \t,;") };
	return p < end ? p + id->len : NULL;
}

/*
 * Whether what stands in brackets names a message: one word with '@' or a
 * digit.  A fold inside of an id left one blank there; more of them, or a
 * blank and no '@', are prose ("<last week>").
 */
static bool
is_id(const struct id *id)
{
	bool has_at = memchr(id->p, '@', id->len) != NULL, has_digit = false;
	size_t i, blanks = 0;

	for (i = 0; i < id->len; i++) {
		has_digit |= id->p[i] >= '0' && id->p[i] <= '9';
		blanks += (id->p[i] == ' ' || id->p[i] == '\t') &&
		    id->p[i + 1] != ' ' && id->p[i + 1] != '\t';
	}
	return has_at ? blanks <= 1 : has_digit && blanks == 0;
}

/* Encoded words, where none belong, are decoded first. */
static struct field
ids_field(struct arena *arena, const struct field *field)
{
	const char *text;

	if (field->value == NULL ||
	    memmem(field->value, field->len, "=?", 2) == NULL)
		return *field;
	text = encoded_text(arena, field->value, field->len);
	return (struct field){ text, strlen(text) };
}

static char *
ids_clean(struct arena *arena, const struct id *id)
{
	const unsigned char *c;
	char *text = text_clean(arena, id->p, id->len, NULL), *out = text;

	for (c = (const unsigned char *)text; *c != '\0'; c++)
		if (*c >= 0x20 && *c != 0x7F)
			*out++ = (char)*c;
	*out = '\0';
	return text;
}

/* Without the blank that a fold left. */
static const char *
ids_clean_id(struct arena *arena, const struct id *id)
{
	char *text = ids_clean(arena, id), *p = text, *out = text;

	for (; *p != '\0'; p++)
		if (*p != ' ' && *p != '\t')
			*out++ = *p;
	*out = '\0';
	return text;
}

const char *
ids_own(struct arena *arena, const struct field *field)
{
	struct field f = ids_field(arena, field);
	struct id id;

	if (f.value == NULL || f.len == 0)
		return NULL;
	if ((is_tokens(&f) ? ids_next_token : ids_next_angle)(f.value,
	    f.value + f.len, &id) == NULL)
		return NULL;
	return is_id(&id) ? ids_clean_id(arena, &id) : ids_clean(arena, &id);
}

const char **
ids_all(struct arena *arena, const struct field *field, const char *own,
    size_t *n_r)
{
	struct field f = ids_field(arena, field);
	const char *(*next)(const char *, const char *, struct id *);
	const char *p, *end, **ids;
	size_t n = 0, k = 0, i = 0;
	struct id id;

	*n_r = 0;
	if (f.value == NULL || f.len == 0)
		return NULL;
	end = f.value + f.len;
	next = is_tokens(&f) ? ids_next_token : ids_next_angle;
	for (p = f.value; (p = next(p, end, &id)) != NULL;)
		n += is_id(&id);
	ids = ARENA_ARRAY(arena, const char *, (n < IDS_MAX ? n : IDS_MAX) + 1);
	for (p = f.value; (p = next(p, end, &id)) != NULL;) {
		if (!is_id(&id) || (i++ > 0 && n - i + 1 >= IDS_MAX))
			continue;
		ids[k] = ids_clean_id(arena, &id);
		if (own == NULL || strcmp(ids[k], own) != 0)
			k++;
	}
	*n_r = k;
	return ids;
}

/* "Message from Ann <ann@example.org> of Monday <id@example.org>" */
static bool
has_prose(const struct field *f)
{
	const char *p = f->value, *end = p + f->len;

	for (; p < end; p++) {
		if (*p == '<') {
			p = memchr(p, '>', (size_t)(end - p));
			if (p == NULL)
				return false; /* it never closes */
		} else if (strchr(" \t,;()>", *p) == NULL) {
			return true;
		}
	}
	return false;
}

const char *
ids_parent(struct arena *arena, const struct field *field, const char *own)
{
	struct field f = ids_field(arena, field);
	const char **ids;
	size_t n;

	ids = ids_all(arena, &f, own, &n);
	if (n == 0)
		return NULL;
	return ids[is_tokens(&f) || !has_prose(&f) ? 0 : n - 1];
}
