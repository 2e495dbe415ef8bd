/*
 * body.c - the text and the attachments of a message.
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * gmime tells the structure of a multipart (tree.c); here the leaves are given
 * their roles and read.  The text is what a person would read: plain parts in
 * their order, HTML where there is nothing else.  What is no text is an
 * attachment; its size is counted by decoding it piece by piece.
 */
#include "mime/body.h"

#include "base/text.h"
#include "base/xmem.h"
#include "mime/attachment.h"
#include "mime/charset.h"
#include "mime/decode.h"
#include "mime/flowed.h"
#include "mime/html.h"
#include "mime/ids.h"
#include "mime/param.h"
#include "mime/tree.h"
#include "mime/uuencode.h"

#include <ctype.h>

#define SNIPPET_CHARACTERS 160

struct reader {
	struct arena *arena;
	struct source *src;
	const struct mime_limits *limits;
	struct tree *tree;
	struct content *content;
	struct buf text;
	struct cid_list cids;
	struct uu_file *uu_files;
	unsigned char *scratch; /* SOURCE_CHUNK bytes, for files */
};

/* --- bytes of a leaf ----------------------------------------------------- */

static enum encoding
leaf_encoding(const struct leaf *leaf)
{
	const struct field *f = &leaf->headers.fields[HEADER_ENCODING];

	if (leaf->is_raw || f->value == NULL)
		return ENCODING_NONE;
	return encoding_parse(f->value, f->len);
}

static void
decode_leaf(struct reader *r, const struct leaf *leaf, struct sink *sink)
{
	struct decoder_state d;
	const unsigned char *p;
	uint64_t at = leaf->start;
	size_t n;

	decode_init(&d, leaf_encoding(leaf), sink);
	/* Text: no need to read what is not kept. */
	while (at < leaf->end &&
	    (sink->max == 0 || sink->kept.len < sink->max)) {
		p = source_chunk(r->src, at, leaf->end, r->scratch, &n);
		if (n == 0)
			break;
		decode_feed(&d, p, n);
		at += n;
	}
	decode_end(&d);
}

static uint64_t
decoded_size(struct reader *r, const struct leaf *leaf)
{
	struct sink sink = { .max = 0 };

	if (leaf->bytes != NULL)
		return leaf->end - leaf->start;
	if (leaf_encoding(leaf) == ENCODING_NONE)
		return leaf->end - leaf->start;
	decode_leaf(r, leaf, &sink);
	return sink.total;
}

/* Up to `max` decoded bytes; in the arena or in the message itself. */
static const char *
leaf_bytes(struct reader *r, const struct leaf *leaf, size_t max,
    size_t *len_r)
{
	struct sink sink = { .max = max };
	uint64_t size = leaf->end - leaf->start;
	char *copy;

	if (leaf->bytes != NULL ||
	    (r->src->mem != NULL && leaf_encoding(leaf) == ENCODING_NONE)) {
		*len_r = size < max ? (size_t)size : max;
		return leaf->bytes != NULL ? leaf->bytes
		    : (const char *)r->src->mem + leaf->start;
	}
	decode_leaf(r, leaf, &sink);
	*len_r = sink.kept.len;
	copy = arena_strndup(r->arena, buf_str(&sink.kept), sink.kept.len);
	buf_release(&sink.kept);
	return copy;
}

/* The same as UTF-8. */
static const char *
leaf_text(struct reader *r, const struct leaf *leaf, size_t max, size_t *len_r)
{
	enum charset charset = leaf->is_raw ? CHARSET_GUESSED
	    : param_charset(r->arena,
	    &leaf->headers.fields[HEADER_CONTENT_TYPE]);
	const char *bytes, *meta;
	size_t len, meta_len;

	bytes = leaf_bytes(r, leaf, max, &len);
	if (leaf->role == ROLE_HTML && charset == CHARSET_GUESSED &&
	    !text_is_utf8(bytes, len) &&
	    (meta = charset_in_html(bytes, len, &meta_len)) != NULL)
		charset = charset_find(meta, meta_len);
	if (r->tree->charset == CHARSET_GUESSED)
		r->tree->charset = charset != CHARSET_GUESSED ? charset
		    : charset_of_raw(bytes, len, charset);
	return charset_convert(r->arena, charset, bytes, len, len_r);
}

/* --- text ---------------------------------------------------------------- */

/* LF line ends, no control characters but tabs. */
static size_t
normalise(char *out, const char *p, size_t len)
{
	size_t i, n = 0, run;
	unsigned char c;

	for (i = 0; i < len; i++) {
		for (run = i; run < len && (unsigned char)p[run] >= 0x20 &&
		    p[run] != 0x7F && (unsigned char)p[run] != 0xC2; run++)
			;
		memcpy(out + n, p + i, run - i);
		n += run - i;
		if ((i = run) == len)
			break;
		c = (unsigned char)p[i];
		if (c == '\r')
			out[n++] = '\n';
		if (c == '\r' && i + 1 < len && p[i + 1] == '\n')
			i++;
		else if (c == 0xC2 && (unsigned char)p[i + 1] < 0xA0)
			i++; /* C1 */
		else if (c == 0xC2 || c == '\n' || c == '\t')
			out[n++] = (char)c;
	}
	return n;
}

static bool
has_param(struct reader *r, const struct leaf *leaf, const char *name,
    const char *value)
{
	const char *charset, *bytes;
	size_t len;

	bytes = parameter_bytes(r->arena, &leaf->headers.fields
	    [HEADER_CONTENT_TYPE], name, &len, &charset);
	return bytes != NULL && strcasecmp(bytes, value) == 0;
}

static void
add_plain(struct reader *r, const struct leaf *leaf, const char *text,
    size_t len)
{
	char *clean = arena_alloc(r->arena, len + 1);

	len = normalise(clean, text, len);
	len = uuencode_extract(r->arena, clean, len, &r->uu_files);
	if (!leaf->is_raw && has_param(r, leaf, "format", "flowed"))
		flowed_to_text(&r->text, clean, len,
		    has_param(r, leaf, "delsp", "yes"));
	else
		buf_add(&r->text, clean, len);
}

static size_t
room(const struct reader *r)
{
	return r->text.len < r->limits->text_bytes
	    ? r->limits->text_bytes - r->text.len : 0;
}

static void
add_text(struct reader *r, const struct leaf *leaf)
{
	size_t len, before = r->text.len;
	const char *text;

	if (room(r) == 0)
		return;
	/* Tags take room that text does not. */
	text = leaf_text(r, leaf,
	    leaf->role == ROLE_HTML ? 2 * room(r) : room(r), &len);
	if (before > 0 && r->text.data[before - 1] != '\n')
		buf_addc(&r->text, '\n');
	if (leaf->role == ROLE_HTML)
		html_to_text(&r->text, text, len, room(r));
	else
		add_plain(r, leaf, text, len);
}

static bool
is_text_blank(const struct buf *text)
{
	size_t i;

	for (i = 0; i < text->len; i++)
		if (!isspace((unsigned char)text->data[i]))
			return false;
	return true;
}

static void
read_texts(struct reader *r)
{
	struct leaf *leaf;

	for (leaf = r->tree->first; leaf != NULL; leaf = leaf->next)
		if (leaf->is_text && !leaf->is_alternative)
			add_text(r, leaf);
	if (!is_text_blank(&r->text))
		return;
	/* The preferred form says nothing: then the others. */
	for (leaf = r->tree->first; leaf != NULL; leaf = leaf->next)
		if (leaf->is_text && leaf->is_alternative)
			add_text(r, leaf);
}

/* --- attachments --------------------------------------------------------- */

static void
find_references(struct reader *r)
{
	bool has_ids = false;
	struct leaf *leaf;
	const char *html;
	size_t len;

	for (leaf = r->tree->first; leaf != NULL; leaf = leaf->next)
		has_ids |= leaf->is_listed &&
		    leaf->headers.fields[HEADER_CONTENT_ID].value != NULL;
	if (!has_ids)
		return;
	for (leaf = r->tree->first; leaf != NULL; leaf = leaf->next) {
		if (!leaf->is_text || leaf->role != ROLE_HTML)
			continue;
		html = leaf_text(r, leaf, 2 * r->limits->text_bytes, &len);
		html_find_cids(r->arena, html, len, &r->cids);
	}
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
	const struct field *disposition =
	    &leaf->headers.fields[HEADER_DISPOSITION];
	bool is_referenced;

	a->filename = leaf->name;
	a->content_type = leaf->type;
	a->content_id = content_id(r->arena,
	    &leaf->headers.fields[HEADER_CONTENT_ID]);
	a->size = decoded_size(r, leaf);
	is_referenced = a->content_id != NULL &&
	    cid_list_has(&r->cids, a->content_id);
	a->is_inline = is_referenced || strcmp(param_word(r->arena,
	    disposition), "inline") == 0;
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

	for (leaf = r->tree->first; leaf != NULL; leaf = leaf->next)
		n += leaf->is_listed;
	for (file = r->uu_files; file != NULL; file = file->next)
		n++;
	if (n == 0)
		return;
	find_references(r);
	c->n_attachments = n;
	c->attachments = ARENA_ARRAY(r->arena, struct attachment, n);
	for (n = 0, leaf = r->tree->first; leaf != NULL; leaf = leaf->next)
		if (leaf->is_listed)
			read_attachment(r, leaf, &c->attachments[n++]);
	/* They were put in front of each other. */
	for (n = c->n_attachments, file = r->uu_files; file != NULL;
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

/* --- reports ------------------------------------------------------------- */

/*
 * A bounce seldom says in its own header what it answers: then the message it
 * returns does, and both are one conversation.
 */
static void
read_report(struct reader *r)
{
	struct content *c = r->content;
	struct headers returned;
	struct leaf *leaf;
	const char *id;

	if (c->in_reply_to != NULL || c->n_references > 0)
		return;
	for (leaf = r->tree->first; leaf != NULL; leaf = leaf->next) {
		if (leaf->role != ROLE_REPORT || leaf->bytes != NULL ||
		    leaf_encoding(leaf) != ENCODING_NONE ||
		    (strcmp(leaf->type, "text/rfc822-headers") != 0 &&
		    strcmp(leaf->type, "message/rfc822") != 0))
			continue;
		headers_scan(r->arena, r->src, leaf->start, leaf->end, 0,
		    r->limits->header_bytes, &returned);
		id = ids_own(r->arena, &returned.fields[HEADER_MESSAGE_ID]);
		if (id == NULL)
			continue;
		c->references = ARENA_ARRAY(r->arena, const char *, 1);
		c->references[c->n_references++] = id;
		return;
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

const char *
body_read(struct arena *arena, struct source *src,
    const struct headers *headers, const struct mime_limits *limits,
    struct content *content, enum charset *charset_r)
{
	struct tree tree;
	struct reader r = { .arena = arena, .src = src, .limits = limits,
		.tree = &tree, .content = content, .text = BUF_INIT };
	const char *reason;

	reason = tree_build(arena, src, headers, limits, &tree);
	if (src->mem == NULL)
		r.scratch = xmalloc(SOURCE_CHUNK);
	read_texts(&r);
	read_attachments(&r);
	read_report(&r);
	content->text_len = text_cut(buf_str(&r.text), r.text.len,
	    limits->text_bytes);
	content->text = arena_strndup(arena, buf_str(&r.text),
	    content->text_len);
	content->snippet = make_snippet(arena, content->text,
	    content->text_len);
	*charset_r = tree.charset;
	buf_release(&r.text);
	free(r.scratch);
	return reason;
}
