/*
 * attachment.c - names of attachments.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * A name is data for people; nothing of ours is ever called by it.  Still it
 * must not look like another: no path (L188), nothing that turns or hides
 * characters (L189).
 */
#include "mime/attachment.h"

#include "base/text.h"
#include "mime/param.h"

static bool
is_deceptive(uint32_t code)
{
	return (code >= 0x200B && code <= 0x200F) ||
	    (code >= 0x202A && code <= 0x202E) ||
	    (code >= 0x2060 && code <= 0x2069) || code == 0xFEFF ||
	    code == 0xAD || code == 0x61C || code == 0x2028 || code == 0x2029 ||
	    code < 0x20 || (code >= 0x7F && code < 0xA0);
}

const char *
attachment_clean_name(struct arena *arena, const char *name)
{
	const unsigned char *p = (const unsigned char *)name;
	char *out = arena_alloc(arena, strlen(name) + 1);
	size_t n = 0;
	unsigned len;

	for (; *p != '\0'; p += len) {
		if (*p == '/' || *p == '\\') {
			n = 0;
			len = 1;
			continue;
		}
		len = text_utf8_char(p, 4);
		if (is_deceptive(text_code(p, len)) || (n == 0 && *p == ' '))
			continue;
		memcpy(out + n, p, len);
		n += len;
	}
	while (n > 0 && out[n - 1] == ' ')
		n--;
	out[n] = '\0';
	if (n == 0 || strcmp(out, ".") == 0 || strcmp(out, "..") == 0)
		return NULL;
	return out;
}

const char *
attachment_name(struct arena *arena, const struct field *type,
    const struct field *disposition)
{
	const char *name;

	name = parameter_text(arena, disposition, "filename");
	if (name == NULL || *name == '\0')
		name = parameter_text(arena, type, "name");
	return name == NULL ? NULL : attachment_clean_name(arena, name);
}
