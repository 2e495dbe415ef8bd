/*
 * reading.c - what a person reads of a leaf.
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * Limits are limits of text.  What the text is wrapped in may be of any length
 * (styles, scripts, files that stand uuencoded in it): so a leaf is decoded,
 * converted and freed of markup in pieces, until there is enough text.
 */
#include "config.h"

#include "mime/reading.h"

#include "base/text.h"
#include "mime/charset.h"
#include "mime/flowed.h"
#include "mime/leaf.h"
#include "mime/param.h"

#include <ctype.h>

#define PIECE ((size_t)65536) /* decoded bytes at a time */

bool
reading_is_blank(const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t i;

	for (i = 0; i < len; i++)
		if (!isspace(p[i]) && !(p[i] == 0xC2 && i + 1 < len &&
		    p[i + 1] == 0xA0 && ++i))
			return false;
	return true;
}

/* --- charset ------------------------------------------------------------- */

static enum charset
leaf_charset(struct reading *r, const struct leaf *leaf, const char *bytes,
    size_t len)
{
	enum charset charset = leaf->is_raw ? CHARSET_GUESSED
	    : param_charset(r->arena,
	    &leaf->headers.fields[HEADER_CONTENT_TYPE]);
	const char *meta;
	size_t meta_len;

	if (leaf->role == ROLE_HTML && charset == CHARSET_GUESSED &&
	    !text_is_utf8(bytes, len) &&
	    (meta = charset_in_html(bytes, len, &meta_len)) != NULL)
		charset = charset_find(meta, meta_len);
	if (r->tree->charset == CHARSET_GUESSED)
		r->tree->charset = charset != CHARSET_GUESSED ? charset
		    : charset_of_raw(bytes, len, charset);
	return charset;
}

/* --- a leaf, piece by piece ---------------------------------------------- */

static bool
leaf_has_param(struct reading *r, const struct leaf *leaf, const char *name,
    const char *value)
{
	const char *charset, *bytes;
	size_t len;

	bytes = parameter_bytes(r->arena, &leaf->headers.fields
	    [HEADER_CONTENT_TYPE], name, &len, &charset);
	return bytes != NULL && strcasecmp(bytes, value) == 0;
}

/* No control characters, and no first bytes of C1. */
static const bool is_kept[256] = {
	[0x20 ... 0x7E] = true,
	[0x80 ... 0xC1] = true,
	[0xC3 ... 0xFF] = true,
};

/* LF line ends, no control characters but tabs. */
static size_t
reading_normalise(char *out, const char *p, size_t len)
{
	size_t i, n = 0, run;
	unsigned char c;

	for (i = 0; i < len; i++) {
		for (run = i; run < len && is_kept[(unsigned char)p[run]]; run++)
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

/* Each way of reading: what it does with a piece. */
struct leaf_reader {
	struct reading *reading;
	const struct leaf *leaf;
	bool is_html;
	struct html html;
	struct uu uu;
	struct cid_list *cids;
};

static void
reader_feed(struct leaf_reader *r, const char *text, size_t len, bool is_last,
    struct arena *scratch)
{
	char *clean;

	if (r->cids != NULL) {
		html_find_cids(r->reading->arena, text, len, r->cids);
		return;
	}
	if (r->is_html) {
		html_feed(&r->html, text, len, is_last);
		return;
	}
	clean = arena_alloc(scratch, len + 1);
	uuencode_feed(&r->uu, clean, reading_normalise(clean, text, len));
}

static bool
reader_is_full(const struct leaf_reader *r)
{
	return r->is_html ? r->html.is_cut : r->uu.is_cut;
}

/* Whole, when it is in memory and not long: most texts are. */
static bool
reader_read_at_once(struct leaf_reader *r)
{
	const struct leaf *leaf = r->leaf;
	struct arena *arena = r->reading->arena;
	const char *bytes, *text;
	size_t len;

	if (leaf->end - leaf->start > PIECE)
		return false;
	bytes = leaf_bytes(arena, leaf, PIECE, &len);
	text = charset_convert(arena, leaf_charset(r->reading, leaf, bytes,
	    len), bytes, len, &len);
	reader_feed(r, text, len, true, arena);
	return true;
}

static void
reader_read_in_pieces(struct leaf_reader *r)
{
	struct arena *scratch = arena_new("piece of a text");
	enum charset charset = CHARSET_GUESSED;
	const char *bytes, *text;
	bool is_first = true;
	struct pieces pieces;
	size_t len;

	pieces_init(&pieces, r->leaf);
	while (!reader_is_full(r) &&
	    pieces_next(&pieces, PIECE, &bytes, &len)) {
		if (is_first)
			charset = leaf_charset(r->reading, r->leaf, bytes,
			    len);
		is_first = false;
		text = charset_convert(scratch, charset, bytes, len, &len);
		reader_feed(r, text, len, pieces_are_over(&pieces), scratch);
		arena_reset(scratch);
	}
	pieces_release(&pieces);
	arena_free(&scratch);
}

static void
reader_read(struct leaf_reader *r)
{
	if (!reader_read_at_once(r))
		reader_read_in_pieces(r);
}

/* --- the kinds ------------------------------------------------------- */

static bool
reading_add_html(struct reading *r, const struct leaf *leaf, struct buf *out,
    size_t max)
{
	struct leaf_reader reader = { .reading = r, .leaf = leaf,
		.is_html = true };

	html_init(&reader.html, out, max - out->len);
	reader_read(&reader);
	html_release(&reader.html);
	return !reader.html.is_cut;
}

static bool
reading_add_plain(struct reading *r, const struct leaf *leaf, struct buf *out,
    size_t max)
{
	bool is_flowed = !leaf->is_raw &&
	    leaf_has_param(r, leaf, "format", "flowed");
	struct leaf_reader reader = { .reading = r, .leaf = leaf };
	struct buf lines = BUF_INIT;

	reader.uu = (struct uu){ .arena = r->arena, .max = max,
		.out = is_flowed ? &lines : out, .files = r->files };
	reader_read(&reader);
	uuencode_end(&reader.uu);
	r->files = reader.uu.files;
	if (is_flowed)
		flowed_to_text(out, buf_str(&lines), lines.len,
		    leaf_has_param(r, leaf, "delsp", "yes"));
	buf_release(&lines);
	return !reader.uu.is_cut;
}

bool
reading_add(struct reading *r, const struct leaf *leaf, struct buf *out,
    size_t max)
{
	if (out->len > 0 && out->data[out->len - 1] != '\n')
		buf_addc(out, '\n');
	if (out->len >= max)
		return leaf->start == leaf->end;
	return leaf->role == ROLE_HTML ? reading_add_html(r, leaf, out, max)
	    : reading_add_plain(r, leaf, out, max);
}

/* Its first bytes show enough, unless much stands in front of the text. */
void
reading_sample(struct reading *r, const struct leaf *leaf, struct buf *out,
    size_t max)
{
	size_t size = 8 * max, before = out->len, len;
	const char *bytes, *text;

	bytes = leaf_bytes(r->arena, leaf, size, &len);
	text = charset_convert(r->arena, leaf_charset(r, leaf, bytes, len),
	    bytes, len, &len);
	if (leaf->role != ROLE_HTML) {
		buf_add(out, text, len < max ? len : max);
		return;
	}
	html_to_text(out, text, len, max);
	if (out->len - before >= max / 2 || leaf->end - leaf->start <= size)
		return;
	out->len = before;
	reading_add_html(r, leaf, out, before + max);
}

void
reading_find_cids(struct reading *r, const struct leaf *leaf,
    struct cid_list *list)
{
	struct leaf_reader reader = { .reading = r, .leaf = leaf,
		.cids = list };

	reader_read(&reader);
}
