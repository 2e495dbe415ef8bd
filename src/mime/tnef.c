/*
 * tnef.c - what Outlook puts into winmail.dat.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * A stream of attributes, of which two hold lists of MAPI properties.  Every
 * length is foreign (L194): a reader never leaves its window, and what does not
 * fit ends the reading there, with all that was read before.  Nothing is
 * copied.
 */
#include "mime/tnef.h"

#define FILES_MAX 1000
#define SIGNATURE 0x223E9F78u

/* Attributes: their type and number. */
enum {
	ATTR_BODY = 0x0002800C,
	ATTR_MESSAGE_PROPS = 0x00069003,
	ATTR_CODEPAGE = 0x00069007,
	ATTR_FILE_DATA = 0x0006800F,
	ATTR_FILE_TITLE = 0x00018010,
	ATTR_FILE_BEGIN = 0x00069002,
	ATTR_FILE_PROPS = 0x00069005,
};

/* MAPI property ids and types. */
enum {
	PROP_SUBJECT = 0x0037, PROP_BODY = 0x1000, PROP_RTF = 0x1009,
	PROP_HTML = 0x1013, PROP_CPID = 0x3FDE, PROP_FILE_DATA = 0x3701,
	PROP_FILE_NAME = 0x3704, PROP_FILE_LONG_NAME = 0x3707,
	PROP_FILE_MIME = 0x370E, PROP_FILE_CID = 0x3712,
	PROP_DISPLAY_NAME = 0x3001,
};

enum { TYPE_OBJECT = 0x000D, TYPE_STRING8 = 0x001E, TYPE_UNICODE = 0x001F,
	TYPE_BINARY = 0x0102, TYPE_MANY = 0x1000 };

struct window {
	const unsigned char *p, *end;
};

static uint32_t
tnef_le(const unsigned char *p, size_t n)
{
	uint32_t v = 0;

	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

static bool
take_number(struct window *w, size_t n, uint32_t *v)
{
	if ((size_t)(w->end - w->p) < n)
		return false;
	*v = tnef_le(w->p, n);
	w->p += n;
	return true;
}

static bool
take_bytes(struct window *w, size_t len, struct window *bytes)
{
	if ((size_t)(w->end - w->p) < len)
		return false;
	*bytes = (struct window){ w->p, w->p + len };
	w->p += len;
	return true;
}

/* Values are padded to four bytes; the last one may lack that. */
static bool
take_padded(struct window *w, size_t len, struct window *bytes)
{
	size_t pad = (4 - len % 4) % 4, left;

	if (!take_bytes(w, len, bytes))
		return false;
	left = (size_t)(w->end - w->p);
	w->p += pad < left ? pad : left;
	return true;
}

/* --- MAPI properties ----------------------------------------------------- */

static size_t
prop_size(uint32_t type)
{
	switch (type) {
	case 0x0002: /* I2, ... */
	case 0x0003:
	case 0x0004:
	case 0x000A:
	case 0x000B:
		return 4;
	case 0x0005: /* doubles, times */
	case 0x0006:
	case 0x0007:
	case 0x0014:
	case 0x0040:
		return 8;
	case 0x0048:
		return 16;
	default:
		return 0;
	}
}

static bool
prop_is_variable(uint32_t type)
{
	return type == TYPE_OBJECT || type == TYPE_STRING8 ||
	    type == TYPE_UNICODE || type == TYPE_BINARY;
}

/* Named properties carry a GUID and a number or a name. */
static bool
prop_skip_name(struct window *w)
{
	struct window ignored;
	uint32_t kind, n;

	if (!take_bytes(w, 16, &ignored) || !take_number(w, 4, &kind) ||
	    !take_number(w, 4, &n))
		return false;
	return kind == 0 || take_padded(w, n, &ignored);
}

/* One value or many; the first is the one that is wanted. */
static bool
prop_take_values(struct window *w, uint32_t type, struct window *value)
{
	size_t size = prop_size(type & 0xFFFu);
	bool has_count = prop_is_variable(type & 0xFFFu) || (type & TYPE_MANY);
	uint32_t n = 1, i, len;
	struct window next;

	*value = (struct window){ NULL, NULL };
	if (has_count && !take_number(w, 4, &n))
		return false;
	for (i = 0; i < n; i++) {
		len = (uint32_t)size;
		if (prop_is_variable(type & 0xFFFu) && !take_number(w, 4, &len))
			return false;
		/* An unknown type: its length is not known either. */
		if ((size == 0 && !prop_is_variable(type & 0xFFFu)) ||
		    !take_padded(w, len, &next))
			return false;
		if (i == 0)
			*value = next;
	}
	return true;
}

struct prop {
	uint32_t id, type;
	struct window value;
};

static bool
prop_take(struct window *w, struct prop *prop)
{
	return take_number(w, 2, &prop->type) &&
	    take_number(w, 2, &prop->id) &&
	    (prop->id < 0x8000 || prop_skip_name(w)) &&
	    prop_take_values(w, prop->type, &prop->value);
}

static void
tnef_set(struct tnef_bytes *b, const struct prop *prop)
{
	const unsigned char *p = prop->value.p, *end = prop->value.end;

	if (p == NULL || b->p != NULL || !prop_is_variable(prop->type))
		return;
	b->is_utf16 = prop->type == TYPE_UNICODE;
	if (b->is_utf16 && end - p >= 2 && end[-1] == 0 && end[-2] == 0)
		end -= 2;
	else if (prop->type == TYPE_STRING8 && end > p && end[-1] == 0)
		end--;
	b->p = p;
	b->len = (size_t)(end - p);
}

static void
tnef_note_prop(struct tnef *t, const struct prop *prop)
{
	switch (prop->id) {
	case PROP_SUBJECT:
		tnef_set(&t->subject, prop);
		break;
	case PROP_BODY:
		tnef_set(&t->body, prop);
		break;
	case PROP_HTML:
		tnef_set(&t->html, prop);
		break;
	case PROP_RTF:
		tnef_set(&t->rtf, prop);
		break;
	case PROP_CPID:
		if (prop->value.end - prop->value.p >= 4)
			t->html_codepage = tnef_le(prop->value.p, 4);
		break;
	}
}

static void
tnef_note_file_prop(struct tnef_file *f, const struct prop *prop)
{
	switch (prop->id) {
	case PROP_FILE_LONG_NAME:
		f->name = (struct tnef_bytes){ 0 }; /* better than others */
		tnef_set(&f->name, prop);
		break;
	case PROP_FILE_NAME:
	case PROP_DISPLAY_NAME:
		tnef_set(&f->name, prop);
		break;
	case PROP_FILE_MIME:
		tnef_set(&f->mime_type, prop);
		break;
	case PROP_FILE_CID:
		tnef_set(&f->content_id, prop);
		break;
	case PROP_FILE_DATA:
		tnef_set(&f->data, prop);
		break;
	}
}

/* false: the list ends before its count says so. */
static bool
tnef_read_props(struct window w, struct tnef *t, struct tnef_file *file)
{
	struct prop prop;
	uint32_t n;

	if (!take_number(&w, 4, &n))
		return false;
	while (n-- > 0) {
		if (!prop_take(&w, &prop))
			return false;
		if (file != NULL)
			tnef_note_file_prop(file, &prop);
		else
			tnef_note_prop(t, &prop);
	}
	return true;
}

/* --- attributes ---------------------------------------------------------- */

static struct tnef_bytes
tnef_plain_bytes(struct window w)
{
	while (w.end > w.p && w.end[-1] == 0)
		w.end--;
	return (struct tnef_bytes){ .p = w.p, .len = (size_t)(w.end - w.p) };
}

struct tnef_reader {
	struct arena *arena;
	struct tnef *tnef;
	struct tnef_file *file, **last;
	size_t n_files;
};

static void
tnef_begin_file(struct tnef_reader *r)
{
	if (r->n_files++ >= FILES_MAX) {
		r->tnef->is_cut = true;
		r->file = NULL;
		return;
	}
	r->file = ARENA_NEW(r->arena, struct tnef_file);
	*r->last = r->file;
	r->last = &r->file->next;
}

static void
tnef_read_attribute(struct tnef_reader *r, uint32_t id, struct window w)
{
	struct tnef *t = r->tnef;

	switch (id) {
	case ATTR_BODY:
		if (t->body.p == NULL)
			t->body = tnef_plain_bytes(w);
		break;
	case ATTR_CODEPAGE:
		take_number(&w, 4, &t->codepage);
		break;
	case ATTR_MESSAGE_PROPS:
		t->is_cut |= !tnef_read_props(w, t, NULL);
		break;
	case ATTR_FILE_BEGIN:
		tnef_begin_file(r);
		break;
	case ATTR_FILE_PROPS:
		if (r->file != NULL)
			t->is_cut |= !tnef_read_props(w, t, r->file);
		break;
	case ATTR_FILE_TITLE:
		if (r->file != NULL && r->file->name.p == NULL)
			r->file->name = tnef_plain_bytes(w);
		break;
	case ATTR_FILE_DATA:
		if (r->file != NULL)
			r->file->data = (struct tnef_bytes){ .p = w.p,
				.len = (size_t)(w.end - w.p) };
		break;
	}
}

bool
tnef_read(struct arena *arena, const unsigned char *data, size_t len,
    struct tnef *tnef)
{
	struct window w = { data, data + len }, value = w;
	struct tnef_reader r = { .arena = arena, .tnef = tnef,
		.last = &tnef->files };
	uint32_t signature, key, level, id, size;
	size_t left;

	*tnef = (struct tnef){ 0 };
	if (!take_number(&w, 4, &signature) || signature != SIGNATURE ||
	    !take_number(&w, 2, &key))
		return false;
	while (w.p < w.end) {
		if (!take_number(&w, 1, &level) || !take_number(&w, 4, &id) ||
		    !take_number(&w, 4, &size)) {
			tnef->is_cut = true;
			break;
		}
		left = (size_t)(w.end - w.p);
		tnef->is_cut |= size > left;
		take_bytes(&w, size < left ? size : left, &value);
		tnef_read_attribute(&r, id, value);
		left = (size_t)(w.end - w.p);
		w.p += left < 2 ? left : 2; /* the checksum */
	}
	return true;
}
