/*
 * body.c - the text and the attachments of a message.
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * gmime tells the structure of a multipart (tree.c), unwrap.c what is wrapped
 * in other formats; here the leaves are read.  The text is what a person would
 * read: plain parts in their order, HTML where there is nothing else or where
 * the plain part only says that there is HTML.  What else says something
 * (another form of the text, invitations, attached messages) is shown when
 * there is no text, and searched in any case.  What is no text is an
 * attachment; its size is counted by decoding it piece by piece.
 */
#include "config.h"

#include "mime/body.h"

#include "base/text.h"
#include "mime/alternative.h"
#include "mime/attachment.h"
#include "mime/calendar.h"
#include "mime/charset.h"
#include "mime/encoded.h"
#include "mime/leaf.h"
#include "mime/param.h"
#include "mime/reading.h"
#include "mime/report.h"
#include "mime/unwrap.h"

#include <ctype.h>

#define SNIPPET_CHARACTERS 160
#define MESSAGES_DEPTH 4 /* attached to each other */

struct reader {
	struct arena *arena;
	const struct mime_limits *limits;
	struct tree tree;
	struct content *content;
	struct reading reading;
	struct buf text, extra;
	struct cid_list cids;
	const char *reason;
	unsigned depth;	   /* of attached messages */
	size_t *parts_left; /* for those that are attached, all together */
};

static void body_read_parts(struct reader *r, struct source *src,
    const struct headers *headers);
static void reader_finish(struct reader *r);

static void
reader_set_reason(struct reader *r, const char *reason)
{
	if (r->reason == NULL)
		r->reason = reason;
}

/* --- text ---------------------------------------------------------------- */

static void
reader_add_text(struct reader *r, const struct leaf *leaf, struct buf *out)
{
	if (!reading_add(&r->reading, leaf, out, r->limits->text_bytes))
		reader_set_reason(r,
		    "the text is too long; its beginning is kept");
}

/* Leaves [leaf, end) of one multipart/alternative: the preferred, or not. */
static void
add_forms(struct reader *r, const struct leaf *leaf, const struct leaf *end,
    bool is_alternative, struct buf *out)
{
	for (; leaf != end; leaf = leaf->next)
		if (leaf->is_text && leaf->is_alternative == is_alternative)
			reader_add_text(r, leaf, out);
}

/*
 * The beginning of the other form, to compare with what was read from `start`
 * on; false: there is none, or no doubt.
 */
static bool
sample_other(struct reader *r, const struct leaf *leaf,
    const struct leaf *end, size_t start, struct buf *sample)
{
	const char *text = r->text.data + start, *raw;
	size_t len = r->text.len - start, raw_len;
	bool has_other = false;

	for (; leaf != end && sample->len < ALTERNATIVE_SAMPLE;
	    leaf = leaf->next) {
		if (!leaf->is_text || !leaf->is_alternative)
			continue;
		raw = leaf_raw(r->arena, leaf, ALTERNATIVE_RAW, &raw_len);
		if (!has_other &&
		    alternative_is_alike(raw, raw_len, text, len))
			return false;
		has_other = true;
		reading_sample(&r->reading, leaf, sample, ALTERNATIVE_SAMPLE);
	}
	return has_other;
}

static void
read_other_form(struct reader *r, const struct leaf *leaf,
    const struct leaf *end, size_t start)
{
	struct buf other = BUF_INIT;
	size_t len = r->text.len - start;
	const char *text;

	add_forms(r, leaf, end, true, &other);
	text = r->text.data + start;
	if (alternative_is_better(buf_str(&other), other.len, text, len)) {
		buf_add(&r->extra, text, len);
		buf_addc(&r->extra, '\n');
		r->text.len = start;
		buf_add(&r->text, other.data, other.len);
	} else {
		buf_add(&r->extra, buf_str(&other), other.len);
		buf_addc(&r->extra, '\n');
	}
	buf_release(&other);
}

/* One multipart/alternative; returns what follows it. */
static const struct leaf *
read_alternative(struct reader *r, const struct leaf *leaf)
{
	const struct leaf *end = leaf;
	struct buf sample = BUF_INIT;
	const char *text;
	size_t start, len;

	/* The last word of what stands before ends, whichever form is read. */
	if (r->text.len > 0 && r->text.data[r->text.len - 1] != '\n')
		buf_addc(&r->text, '\n');
	start = r->text.len;
	while (end != NULL && end->group == leaf->group)
		end = end->next;
	add_forms(r, leaf, end, false, &r->text);
	len = r->text.len - start;
	text = buf_str(&r->text) + start;
	if (reading_is_blank(text, len)) {
		r->text.len = start;
		add_forms(r, leaf, end, true, &r->text);
	} else if (len < ALTERNATIVE_STUB &&
	    sample_other(r, leaf, end, start, &sample) &&
	    !alternative_is_same(buf_str(&sample), sample.len, text, len)) {
		read_other_form(r, leaf, end, start);
	}
	buf_release(&sample);
	return end;
}

static void
read_texts(struct reader *r)
{
	const struct leaf *leaf = r->tree.first;

	while (leaf != NULL) {
		if (leaf->group != 0) {
			leaf = read_alternative(r, leaf);
			continue;
		}
		if (leaf->is_text && !leaf->is_second)
			reader_add_text(r, leaf, &r->text);
		leaf = leaf->next;
	}
}

/* --- what is read beside the text ---------------------------------------- */

static bool
is_calendar(const struct leaf *leaf)
{
	return strcmp(leaf->type, "text/calendar") == 0 ||
	    strcmp(leaf->type, "text/x-vcalendar") == 0 ||
	    strcmp(leaf->type, "application/ics") == 0 ||
	    leaf_is_octets(leaf, ".ics");
}

static void
read_calendar(struct reader *r, const struct leaf *leaf, struct buf *out)
{
	size_t max = r->limits->text_bytes, len;
	const char *bytes = leaf_bytes(r->arena, leaf, max, &len);

	if (len == max)
		reader_set_reason(r,
		    "a calendar is too long; its beginning is read");
	bytes = calendar_join(r->arena, bytes, &len);
	bytes = charset_convert(r->arena, param_charset(r->arena,
	    &leaf->headers.fields[HEADER_CONTENT_TYPE]), bytes, len, &len);
	calendar_to_text(r->arena, out, bytes, len, max);
}

/* Subjects may hold what file names may not. */
static const char *
name_of_subject(struct arena *arena, const char *subject)
{
	char *name = arena_strdup(arena, subject), *p;

	for (p = name; *p != '\0'; p++)
		if (*p == '/' || *p == '\\')
			*p = '_';
	return attachment_clean_name(arena, name);
}

static void
add_line(struct buf *out, const char *text)
{
	if (text == NULL || *text == '\0')
		return;
	buf_adds(out, text);
	buf_addc(out, '\n');
}

/* Of an attached message: whom it is from, its subject, names of its files. */
static void
read_message_header(struct reader *r, struct leaf *leaf, struct headers *h,
    enum charset charset)
{
	const struct field *subject, *from;

	headers_to_utf8(r->arena, h, charset);
	subject = &h->fields[HEADER_SUBJECT];
	from = &h->fields[HEADER_FROM];
	/* A digest without the empty line between part and message. */
	if (subject->value == NULL && from->value == NULL) {
		subject = &leaf->headers.fields[HEADER_SUBJECT];
		from = &leaf->headers.fields[HEADER_FROM];
	}
	if (subject->value != NULL) {
		const char *text = encoded_text(r->arena, subject->value,
		    subject->len);

		add_line(&r->extra, text);
		if (leaf->name == NULL)
			leaf->name = name_of_subject(r->arena, text);
	}
	if (from->value != NULL)
		add_line(&r->extra, encoded_text(r->arena, from->value,
		    from->len));
}

static void
read_message(struct reader *r, struct leaf *leaf, struct buf *out)
{
	struct mime_limits limits = *r->limits;
	struct content content = { .text = "" };
	struct reader inner = { .arena = r->arena, .limits = &limits,
		.content = &content, .depth = r->depth + 1,
		.parts_left = r->parts_left };
	struct source decoded = { .fd = -1 }, *src = leaf->src;
	uint64_t start = leaf->start, end = leaf->end;
	struct headers h;
	size_t len, i;

	if (leaf_encoding(leaf) != ENCODING_NONE) {
		decoded.mem = (const unsigned char *)leaf_bytes(r->arena,
		    leaf, r->limits->wrapped_bytes, &len);
		decoded.size = end = len;
		start = 0;
		src = &decoded;
	}
	if (start == end)
		return;
	headers_scan(r->arena, src, start, end, limits.address_bytes,
	    limits.header_bytes, &h);
	limits.parts = *r->parts_left;
	body_read_parts(&inner, src, &h);
	*r->parts_left -= inner.tree.n < *r->parts_left ? inner.tree.n
	    : *r->parts_left;
	read_message_header(r, leaf, &h, inner.tree.charset);
	add_line(out, buf_str(&inner.text));
	add_line(&r->extra, buf_str(&inner.extra));
	for (i = 0; i < content.n_attachments; i++)
		add_line(&r->extra, content.attachments[i].filename);
	if (inner.reason != NULL)
		reader_set_reason(r,
		    "an attached message was not read to its end");
	reader_finish(&inner);
}

static bool
is_message(const struct leaf *leaf)
{
	return type_is_message(leaf->type) ||
	    leaf_is_octets(leaf, ".eml");
}

static void
read_seconds(struct reader *r)
{
	bool is_blank = reading_is_blank(buf_str(&r->text), r->text.len);
	size_t max = r->limits->text_bytes;
	struct leaf *leaf;

	for (leaf = r->tree.first; leaf != NULL; leaf = leaf->next) {
		struct buf *out = is_blank ? &r->text : &r->extra;

		if (out->len >= max || r->extra.len >= max) {
			if (is_message(leaf) || is_calendar(leaf))
				reader_set_reason(r, "there is too much text; "
				    "its beginning is kept");
			continue;
		}
		if (leaf->is_second)
			reader_add_text(r, leaf, out);
		else if (is_calendar(leaf))
			read_calendar(r, leaf, out);
		else if (is_message(leaf) && r->depth < MESSAGES_DEPTH &&
		    *r->parts_left > 0)
			read_message(r, leaf, out);
	}
}

/* --- attachments --------------------------------------------------------- */

static void
find_references(struct reader *r)
{
	bool has_ids = false;
	struct leaf *leaf;

	for (leaf = r->tree.first; leaf != NULL; leaf = leaf->next)
		has_ids |= leaf->is_listed &&
		    leaf->headers.fields[HEADER_CONTENT_ID].value != NULL;
	if (!has_ids)
		return;
	for (leaf = r->tree.first; leaf != NULL; leaf = leaf->next)
		if (leaf->is_text && leaf->role == ROLE_HTML)
			reading_find_cids(&r->reading, leaf, &r->cids);
}

static const char *
content_id(struct arena *arena, const struct field *f)
{
	const char *p = f->value;
	size_t len = f->len;
	char *id;

	if (p == NULL)
		return NULL;
	if (len > 0 && *p == '<') {
		p++;
		len--;
	}
	if (len > 0 && p[len - 1] == '>')
		len--;
	id = arena_alloc(arena, len * 3 + 1);
	text_clean_line(id, len * 3 + 1, p, len);
	return *id == '\0' ? NULL : id;
}

static void
read_attachment(struct reader *r, const struct leaf *leaf,
    struct attachment *a)
{
	const char *word = param_word(r->arena,
	    &leaf->headers.fields[HEADER_DISPOSITION]);
	bool is_referenced;

	a->filename = leaf->name;
	a->content_type = leaf->type;
	a->content_id = content_id(r->arena,
	    &leaf->headers.fields[HEADER_CONTENT_ID]);
	a->size = leaf_size(leaf);
	is_referenced = a->content_id != NULL &&
	    cid_list_has(&r->cids, a->content_id);
	a->is_inline = is_referenced || strcmp(word, "inline") == 0 ||
	    (leaf->is_related && a->content_id != NULL && *word == '\0');
	if (!is_referenced && leaf->role == ROLE_FILE)
		r->content->has_attachments = true;
}

static void
read_attachments(struct reader *r)
{
	struct content *c = r->content;
	struct uu_file *file;
	struct leaf *leaf;
	size_t n = 0;

	for (leaf = r->tree.first; leaf != NULL; leaf = leaf->next)
		n += leaf->is_listed;
	for (file = r->reading.files; file != NULL; file = file->next)
		n++;
	if (n == 0)
		return;
	find_references(r);
	c->n_attachments = n;
	c->attachments = ARENA_ARRAY(r->arena, struct attachment, n);
	for (n = 0, leaf = r->tree.first; leaf != NULL; leaf = leaf->next)
		if (leaf->is_listed)
			read_attachment(r, leaf, &c->attachments[n++]);
	/* They were put in front of each other. */
	for (n = c->n_attachments, file = r->reading.files; file != NULL;
	    file = file->next) {
		c->attachments[--n] = (struct attachment){
			.filename = attachment_clean_name(r->arena,
			    file->name),
			.content_type = "application/octet-stream",
			.size = file->size,
		};
		c->has_attachments = true;
	}
}

/* --- snippet ------------------------------------------------------------- */

/* Zero width, from U+200B to U+200F, U+2060 and U+FEFF. */
static bool
is_zero_width(const unsigned char *p)
{
	return (p[0] == 0xE2 && p[1] == 0x80 && p[2] >= 0x8B &&
	    p[2] <= 0x8F) || (p[0] == 0xE2 && p[1] == 0x81 && p[2] == 0xA0) ||
	    (p[0] == 0xEF && p[1] == 0xBB && p[2] == 0xBF);
}

static const char *
make_snippet(struct arena *arena, const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;
	char *out = arena_alloc(arena, SNIPPET_CHARACTERS * 4 + 1);
	size_t n = 0, characters = 0;
	unsigned step;

	for (; p < end && characters < SNIPPET_CHARACTERS; p += step) {
		step = *p < 0x80 ? 1 : *p < 0xE0 ? 2 : *p < 0xF0 ? 3 : 4;
		if (isspace(*p) || (p[0] == 0xC2 && p[1] == 0xA0)) {
			if (n == 0 || out[n - 1] == ' ')
				continue;
			out[n++] = ' ';
		} else if (step == 3 && is_zero_width(p)) {
			continue;
		} else {
			memcpy(out + n, p, step);
			n += step;
		}
		characters++;
	}
	while (n > 0 && out[n - 1] == ' ')
		n--;
	out[n] = '\0';
	return out;
}

/* ------------------------------------------------------------------------- */

/* Everything but what the reader's caller makes of its buffers. */
static void
body_read_parts(struct reader *r, struct source *src,
    const struct headers *headers)
{
	tree_build(r->arena, src, headers, r->limits, &r->tree);
	unwrap(r->arena, r->limits, &r->tree);
	r->reading = (struct reading){ .arena = r->arena, .tree = &r->tree };
	read_texts(r);
	read_seconds(r);
	read_attachments(r);
	if (r->depth == 0)
		report_read(r->arena, &r->tree, headers, r->limits,
		    r->content, &r->text);
	reader_set_reason(r, r->tree.reason);
}

static void
reader_finish(struct reader *r)
{
	unwrap_release(&r->tree);
	buf_release(&r->text);
	buf_release(&r->extra);
}

const char *
body_read(struct arena *arena, struct source *src,
    const struct headers *headers, const struct mime_limits *limits,
    struct content *content, enum charset *charset_r)
{
	size_t parts_left = limits->parts;
	struct reader r = { .arena = arena, .limits = limits,
		.content = content, .parts_left = &parts_left };

	body_read_parts(&r, src, headers);
	content->text_len = text_cut(buf_str(&r.text), r.text.len,
	    limits->text_bytes);
	content->text = arena_strndup(arena, buf_str(&r.text),
	    content->text_len);
	content->extra_len = text_cut(buf_str(&r.extra), r.extra.len,
	    limits->text_bytes);
	content->extra = arena_strndup(arena, buf_str(&r.extra),
	    content->extra_len);
	content->snippet = make_snippet(arena, content->text,
	    content->text_len);
	*charset_r = r.tree.charset;
	reader_finish(&r);
	return r.reason;
}
