/*
 * stream.c - what gmime reads: a made-up header, then the body of a source.
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * gmime shall see structure and nothing else: the real header of the message
 * stays out of its reach (header.c), and one kind of stream serves memory and
 * files, so that a part is a range of the source in both cases.  Reading only.
 */
#include "mime/stream.h"

#include <errno.h>

struct stream {
	GMimeStream parent;
	struct source *src;
	uint64_t body;
	const char *head;
	gint64 head_len;
};

struct stream_class {
	GMimeStreamClass parent;
};

static GType stream_get_type(void);

static ssize_t
on_read(GMimeStream *gs, char *out, size_t len)
{
	struct stream *s = (struct stream *)gs;
	gint64 left = gs->bound_end - gs->position;
	size_t n;

	if (left <= 0)
		return 0;
	if ((gint64)len > left)
		len = (size_t)left;
	if (gs->position < s->head_len) {
		n = (size_t)(s->head_len - gs->position);
		n = n < len ? n : len;
		memcpy(out, s->head + gs->position, n);
	} else {
		n = source_fetch(s->src,
		    (uint64_t)(gs->position - s->head_len) + s->body, out,
		    len);
	}
	gs->position += (gint64)n;
	return (ssize_t)n;
}

static ssize_t
on_write(GMimeStream *gs, const char *p, size_t len)
{
	(void)gs;
	(void)p;
	(void)len;
	errno = EBADF;
	return -1;
}

static int
on_nothing(GMimeStream *gs)
{
	(void)gs;
	return 0;
}

static gboolean
on_eos(GMimeStream *gs)
{
	return gs->position >= gs->bound_end;
}

static int
on_reset(GMimeStream *gs)
{
	gs->position = gs->bound_start;
	return 0;
}

static gint64
on_seek(GMimeStream *gs, gint64 offset, GMimeSeekWhence whence)
{
	gint64 base = whence == GMIME_STREAM_SEEK_SET ? 0 :
	    whence == GMIME_STREAM_SEEK_CUR ? gs->position : gs->bound_end;

	if (base + offset < gs->bound_start || base + offset > gs->bound_end) {
		errno = EINVAL;
		return -1;
	}
	gs->position = base + offset;
	return gs->position;
}

static gint64
on_tell(GMimeStream *gs)
{
	return gs->position;
}

static gint64
on_length(GMimeStream *gs)
{
	return gs->bound_end - gs->bound_start;
}

static GMimeStream *
on_substream(GMimeStream *gs, gint64 start, gint64 end)
{
	struct stream *parent = (struct stream *)gs;
	struct stream *s = g_object_new(stream_get_type(), NULL);

	s->src = parent->src;
	s->body = parent->body;
	s->head = parent->head;
	s->head_len = parent->head_len;
	g_mime_stream_construct(&s->parent, start,
	    end == -1 ? gs->bound_end : end);
	return &s->parent;
}

static void
on_class_init(gpointer klass, gpointer data)
{
	GMimeStreamClass *c = klass;

	(void)data;
	c->read = on_read;
	c->write = on_write;
	c->flush = on_nothing;
	c->close = on_nothing;
	c->eos = on_eos;
	c->reset = on_reset;
	c->seek = on_seek;
	c->tell = on_tell;
	c->length = on_length;
	c->substream = on_substream;
}

static GType
stream_get_type(void)
{
	static GType type;

	if (type == 0)
		type = g_type_register_static_simple(GMIME_TYPE_STREAM,
		    "MailherdStream", sizeof(struct stream_class),
		    on_class_init, sizeof(struct stream), NULL, 0);
	return type;
}

GMimeStream *
stream_new(struct source *src, uint64_t body, uint64_t end, const char *head,
    size_t head_len)
{
	struct stream *s = g_object_new(stream_get_type(), NULL);

	s->src = src;
	s->body = body;
	s->head = head;
	s->head_len = (gint64)head_len;
	g_mime_stream_construct(&s->parent, 0,
	    (gint64)(head_len + (end - body)));
	return &s->parent;
}

int
stream_range(GMimeStream *stream, uint64_t *start_r, uint64_t *end_r)
{
	struct stream *s = (struct stream *)stream;

	if (stream == NULL || G_OBJECT_TYPE(stream) != stream_get_type() ||
	    stream->bound_start < s->head_len ||
	    stream->bound_end < stream->bound_start)
		return -1;
	*start_r = (uint64_t)(stream->bound_start - s->head_len) + s->body;
	*end_r = (uint64_t)(stream->bound_end - s->head_len) + s->body;
	return 0;
}
