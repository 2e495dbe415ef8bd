/*
 * ids.c - Message-ID, In-Reply-To and References.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * Only <...> counts: In-Reply-To may hold prose, lists may be glued or hold
 * comments and commas (L178).  A value that is one bare token with '@' is an
 * id too.
 */
#include "mime/ids.h"

#include "base/text.h"

#define IDS_MAX 5000

struct id {
	const char *p;
	size_t len;
};

static bool
is_one_token(const struct field *f)
{
	size_t i;

	for (i = 0; i < f->len; i++)
		if (f->value[i] == ' ' || f->value[i] == '\t' ||
		    f->value[i] == '<' || f->value[i] == '>')
			return false;
	return memchr(f->value, '@', f->len) != NULL;
}

/* Behind the id; NULL: there is none. */
static const char *
next_id(const char *p, const char *end, struct id *id)
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
		id->p = open + 1;
		while (id->p < close && (*id->p == ' ' || *id->p == '\t'))
			id->p++;
		id->len = (size_t)(close - id->p);
		while (id->len > 0 && (id->p[id->len - 1] == ' ' ||
		    id->p[id->len - 1] == '\t'))
			id->len--;
		p = close + 1;
		if (id->len > 0)
			return p;
	}
	return NULL;
}

static const char *
clean(struct arena *arena, const struct id *id)
{
	const unsigned char *c;
	char *text = text_clean(arena, id->p, id->len, NULL), *out = text;

	for (c = (const unsigned char *)text; *c != '\0'; c++)
		if (*c >= 0x20 && *c != 0x7F)
			*out++ = (char)*c;
	*out = '\0';
	return text;
}

const char *
ids_first(struct arena *arena, const struct field *field)
{
	struct id id;

	if (field->value == NULL || field->len == 0)
		return NULL;
	if (is_one_token(field))
		id = (struct id){ field->value, field->len };
	else if (next_id(field->value, field->value + field->len, &id) == NULL)
		return NULL;
	return clean(arena, &id);
}

const char **
ids_all(struct arena *arena, const struct field *field, size_t *n_r)
{
	const char *p, *end, **ids;
	size_t n = 0, k = 0, i = 0;
	struct id id;

	*n_r = 0;
	if (field->value == NULL || field->len == 0)
		return NULL;
	end = field->value + field->len;
	if (is_one_token(field)) {
		ids = ARENA_ARRAY(arena, const char *, 1);
		ids[(*n_r)++] = ids_first(arena, field);
		return ids;
	}
	for (p = field->value; (p = next_id(p, end, &id)) != NULL; n++)
		;
	ids = ARENA_ARRAY(arena, const char *, n < IDS_MAX ? n : IDS_MAX);
	for (p = field->value; (p = next_id(p, end, &id)) != NULL; i++)
		if (i == 0 || n - i < IDS_MAX)
			ids[k++] = clean(arena, &id);
	*n_r = k;
	return ids;
}
