/*
 * mime.c - raw bytes of a message to a struct content.
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * Read in two steps: the body, whose text says in which charset raw bytes of
 * the header are, and the header (header.c and the readers of its fields).
 * Whatever is wrong with one, what the other says is kept.
 */
#include "config.h"

#include "mime/mime.h"

#include "base/text.h"
#include "mime/address.h"
#include "mime/body.h"
#include "mime/date.h"
#include "mime/detect.h"
#include "mime/encoded.h"
#include "mime/header.h"
#include "mime/ids.h"
#include "mime/param.h"
#include "mime/source.h"
#include "mime/subject.h"
#include "mime/tree.h"

const struct mime_limits mime_default_limits = {
	.header_bytes = 1024 * 1024,
	.header_lines = 5000,
	.address_bytes = 1024 * 1024,
	.parts = 10000,
	.depth = 100,
	.text_bytes = 1024 * 1024,
	.wrapped_bytes = 16 * 1024 * 1024,
	.addresses = 10000,
};

void
mime_init(void)
{
	codec_refuse_iconv();
	tree_init();
	detect_init();
}

static void
set_partial(struct content *c, const char *reason)
{
	if (reason == NULL || c->state != PARSE_OK)
		return;
	c->state = PARSE_PARTIAL;
	c->state_reason = reason;
}

static const char *
or_null(const char *s)
{
	return *s == '\0' ? NULL : s;
}

static void
read_addresses(struct arena *arena, const struct headers *h,
    const struct mime_limits *limits, struct content *c)
{
	static const struct {
		enum header_id id;
		char kind;
	} headers[] = { { HEADER_TO, TO }, { HEADER_CC, CC },
		{ HEADER_BCC, BCC }, { HEADER_REPLY_TO, REPLY_TO } };
	struct address_list from = { .max = limits->addresses };
	struct address_list list = { .max = limits->addresses };
	size_t i;

	address_parse(arena, &h->fields[HEADER_FROM], 0, &from);
	c->senders = from.items;
	c->n_senders = from.n;
	if (from.n > 0) {
		c->from_name = or_null(from.items[0].name);
		c->from_addr = or_null(from.items[0].addr);
	}
	for (i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		address_parse(arena, &h->fields[headers[i].id],
		    headers[i].kind, &list);
	c->recipients = list.items;
	c->n_recipients = list.n;
	if (from.is_cut || list.is_cut)
		set_partial(c, "too many addresses; the first ones are kept");
}

static bool
mime_read_date(struct arena *arena, const struct field *f, int64_t *secs_r)
{
	const char *text;

	if (f->value == NULL)
		return false;
	if (memmem(f->value, f->len, "=?", 2) == NULL)
		return date_parse(f->value, f->len, secs_r);
	text = encoded_text(arena, f->value, f->len);
	return date_parse(text, strlen(text), secs_r);
}

/* Behind its last ';' a Received header has the time. */
static int64_t
received_secs(const struct field *f)
{
	const char *p;
	int64_t secs;

	if (f->value == NULL || (p = memrchr(f->value, ';', f->len)) == NULL ||
	    !date_parse(p + 1, f->len - (size_t)(p + 1 - f->value), &secs))
		return 0;
	return secs;
}

static void
read_header(struct arena *arena, const struct headers *h,
    const struct mime_limits *limits, struct content *c)
{
	const struct field *f = h->fields, *subject = &f[HEADER_SUBJECT];

	c->base_subject = "";
	if (subject->value != NULL) {
		c->subject = encoded_text(arena, subject->value, subject->len);
		c->base_subject = subject_base(arena, c->subject,
		    &c->is_reply);
	}
	read_addresses(arena, h, limits, c);
	c->has_sent_at =
	    mime_read_date(arena, &f[HEADER_DATE], &c->sent_at_secs);
	c->received_secs = received_secs(&f[HEADER_RECEIVED]);
	if (h->is_cut)
		set_partial(c, "a header is too long; its beginning is kept");
}

static void
read_ids(struct arena *arena, const struct headers *h, struct content *c)
{
	const struct field *f = h->fields;

	c->message_id = ids_own(arena, &f[HEADER_MESSAGE_ID]);
	c->in_reply_to = ids_parent(arena, &f[HEADER_IN_REPLY_TO],
	    c->message_id);
	c->references = ids_all(arena, &f[HEADER_REFERENCES], c->message_id,
	    &c->n_references);
}

static void
mime_mime_parse(struct arena *arena, struct source *src,
    const struct mime_limits *limits, struct content *c)
{
	enum charset charset;
	const char *reason;
	struct headers h;

	*c = (struct content){ .state = PARSE_OK, .state_reason = "",
		.base_subject = "", .text = "", .extra = "", .snippet = "" };
	headers_scan(arena, src, headers_begin(src), src->size,
	    limits->address_bytes,
	    limits->header_bytes, &h);
	read_ids(arena, &h, c);
	reason = body_read(arena, src, &h, limits, c, &charset);
	headers_to_utf8(arena, &h, charset);
	read_header(arena, &h, limits, c);
	set_partial(c, reason);
	if (src->has_failed)
		set_partial(c, "the message could not be read to its end");
}

/* Only CR as line end, as old Macs wrote it (L169). */
static bool
is_bare_cr(const unsigned char *p, size_t len)
{
	return memchr(p, '\n', len) == NULL && memchr(p, '\r', len) != NULL;
}

void
mime_parse(struct arena *arena, const void *raw, size_t len,
    const struct mime_limits *limits, struct content *content_r)
{
	struct source src = { .mem = raw, .fd = -1, .size = len };
	unsigned char *copy;
	size_t i;

	if (len == 0)
		src.mem = (const unsigned char *)"";
	if (is_bare_cr(src.mem, len < SOURCE_CHUNK ? len : SOURCE_CHUNK)) {
		copy = arena_alloc(arena, len);
		for (i = 0; i < len; i++)
			copy[i] = src.mem[i] == '\r' ? '\n' : src.mem[i];
		src.mem = copy;
	}
	mime_mime_parse(arena, &src, limits, content_r);
}

void
mime_parse_fd(struct arena *arena, int fd, uint64_t size,
    const struct mime_limits *limits, struct content *content_r)
{
	struct source src = { .fd = fd, .size = size };
	unsigned char *first = arena_alloc(arena, SOURCE_CHUNK);
	size_t n = source_fetch(&src, 0, first, SOURCE_CHUNK);

	src.is_bare_cr = is_bare_cr(first, n);
	mime_mime_parse(arena, &src, limits, content_r);
}

void
mime_unparsed(struct arena *arena, const char *reason,
    struct content *content_r)
{
	size_t len = strlen(reason) * 3 + 1;
	char *clean = arena_alloc(arena, len);

	text_clean_line(clean, len, reason, strlen(reason));
	*content_r = (struct content){ .state = PARSE_UNPARSED,
		.state_reason = clean, .base_subject = "", .text = "",
		.extra = "", .snippet = "" };
}
