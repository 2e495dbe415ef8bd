/*
 * fuzz_wrapped.c - the formats that MIME parts hold: S/MIME, TNEF, RTF,
 * invitations, and HTML in pieces.  The first byte says which.
 */
#include "config.h"

#include "base/text.h"
#include "base/xmem.h"
#include "mime/calendar.h"
#include "mime/cms.h"
#include "mime/html.h"
#include "mime/mime.h"
#include "mime/rtf.h"
#include "mime/tnef.h"
#include "mime/uuencode.h"

#include "fuzz.h"

#define TEXT_MAX 5000

static void
check_text(const struct buf *out)
{
	if (!text_is_utf8(buf_str(out), out->len))
		abort();
}

static void
try_cms(const uint8_t *data, size_t size)
{
	unsigned char *copy = xmalloc(size + 1);
	size_t len;

	memcpy(copy, data, size);
	cms_open(copy, size, &len);
	if (len > size)
		abort();
	free(copy);
}

static void
touch(const struct tnef_bytes *b, const uint8_t *data, size_t size)
{
	if (b->p != NULL && (b->p < data || b->len > size ||
	    b->p + b->len > data + size))
		abort();
}

static void
try_tnef(struct arena *arena, const uint8_t *data, size_t size)
{
	const struct tnef_file *f;
	struct tnef t;

	if (!tnef_read(arena, data, size, &t))
		return;
	touch(&t.subject, data, size);
	touch(&t.body, data, size);
	touch(&t.html, data, size);
	touch(&t.rtf, data, size);
	for (f = t.files; f != NULL; f = f->next) {
		touch(&f->name, data, size);
		touch(&f->mime_type, data, size);
		touch(&f->content_id, data, size);
		touch(&f->data, data, size);
	}
}

static void
try_rtf(struct arena *arena, const uint8_t *data, size_t size, bool is_packed)
{
	struct buf rtf = BUF_INIT, out = BUF_INIT;

	if (is_packed)
		rtf_decompress(&rtf, data, size, TEXT_MAX);
	else
		buf_add(&rtf, data, size);
	rtf_to_text(arena, &out, buf_str(&rtf), rtf.len, TEXT_MAX);
	check_text(&out);
	buf_release(&rtf);
	buf_release(&out);
}

/* Pieces of 1, 2, 3 ... bytes; the text of the whole is the same. */
static void
try_html(const char *html, size_t len)
{
	struct buf whole = BUF_INIT, out = BUF_INIT;
	size_t n = 1, i, step;
	struct html h;

	html_to_text(&whole, html, len, TEXT_MAX);
	html_init(&h, &out, TEXT_MAX);
	for (i = 0; i < len; i += step, n++) {
		for (step = 0; step < n && i + step < len; )
			step += text_utf8_char((const unsigned char *)html + i
			    + step, len - i - step);
		html_feed(&h, html + i, step, i + step == len);
	}
	html_release(&h);
	check_text(&out);
	buf_release(&whole);
	buf_release(&out);
}

static void
try_uuencode(struct arena *arena, const char *text, size_t len)
{
	struct buf out = BUF_INIT;
	struct uu u = { .arena = arena, .out = &out, .max = TEXT_MAX };

	uuencode_feed(&u, text, len / 2);
	uuencode_feed(&u, text + len / 2, len - len / 2);
	uuencode_end(&u);
	if (out.len > TEXT_MAX)
		abort();
	buf_release(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new("fuzz");
	struct buf out = BUF_INIT;
	static bool is_ready;
	const char *text;
	size_t len;

	if (!is_ready)
		mime_init();
	is_ready = true;
	if (size > 0) {
		text = text_clean(arena, (const char *)data + 1, size - 1,
		    &len);
		switch (data[0]) {
		case 'c':
			try_cms(data + 1, size - 1);
			break;
		case 't':
			try_tnef(arena, data + 1, size - 1);
			break;
		case 'r':
		case 'z':
			try_rtf(arena, data + 1, size - 1, data[0] == 'z');
			break;
		case 'i':
			calendar_to_text(arena, &out, text, len, TEXT_MAX);
			check_text(&out);
			break;
		case 'h':
			try_html(text, len);
			break;
		case 'u':
			try_uuencode(arena, text, len);
			break;
		}
	}
	buf_release(&out);
	arena_free(&arena);
	return 0;
}
