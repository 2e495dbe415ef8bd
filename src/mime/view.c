/*
 * view.c - what gmime reads: a made-up header, then the body of a source.
 *
 * Runs in: children that parse.  Blocks only on the file.
 *
 * gmime shall see structure and nothing else: the real header of the message
 * stays out of its reach (header.c), and one kind of stream serves memory and
 * files, so that a part is a range of the source in both cases.  Where a part
 * lacks the empty line behind its header, gmime is shown one.  Reading only.
 */
#include "mime/view.h"

#include <errno.h>

struct view_stream {
	GMimeStream parent;
	const struct view *view;
};

struct stream_class {
	GMimeStreamClass parent;
};

static GType view_stream_get_type(void);

/* The first stitch behind a position; those before it shift the position. */
static size_t
view_find(const struct view *v, gint64 position)
{
	size_t low = 0, high = v->n_stitches, i;
	const struct stitch *s;

	while (low < high) {
		i = low + (high - low) / 2;
		s = &v->stitches[i];
		if ((gint64)(s->offset - v->begin + v->head_len) +
		    (i == 0 ? 0 : s[-1].shift) <= position)
			low = i + 1;
		else
			high = i;
	}
	return low;
}

/* The byte of the source at a position behind the head. */
static uint64_t
view_offset(const struct view *v, gint64 position)
{
	size_t i = view_find(v, position);
	gint64 shift = i == 0 ? 0 : v->stitches[i - 1].shift;

	return v->begin + (uint64_t)(position - (gint64)v->head_len - shift);
}

/* Up to the next stitch. */
static size_t
view_read(const struct view *v, gint64 position, char *out, size_t len)
{
	size_t i = view_find(v, position);
	uint64_t offset = view_offset(v, position);
	const struct stitch *s;

	if (i > 0) {
		s = &v->stitches[i - 1];
		if (s->is_line && offset + 1 == s->offset + s->skip) {
			*out = '\n';
			return 1;
		}
	}
	if (i < v->n_stitches && len > v->stitches[i].offset - offset)
		len = (size_t)(v->stitches[i].offset - offset);
	return source_fetch(v->src, offset, out, len);
}

static ssize_t
view_on_read(GMimeStream *gs, char *out, size_t len)
{
	struct view_stream *s = (struct view_stream *)gs;
	gint64 left = gs->bound_end - gs->position;
	gint64 head = (gint64)s->view->head_len - gs->position;
	size_t n;

	if (left <= 0)
		return 0;
	if ((gint64)len > left)
		len = (size_t)left;
	if (head > 0) {
		n = (size_t)head < len ? (size_t)head : len;
		memcpy(out, s->view->head + gs->position, n);
	} else {
		n = view_read(s->view, gs->position, out, len);
	}
	gs->position += (gint64)n;
	return (ssize_t)n;
}

static ssize_t
view_on_write(GMimeStream *gs, const char *p, size_t len)
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
	struct view_stream *parent = (struct view_stream *)gs;
	struct view_stream *s = g_object_new(view_stream_get_type(), NULL);

	s->view = parent->view;
	g_mime_stream_construct(&s->parent, start,
	    end == -1 ? gs->bound_end : end);
	return &s->parent;
}

static void
on_class_init(gpointer klass, gpointer data)
{
	GMimeStreamClass *c = klass;

	(void)data;
	c->read = view_on_read;
	c->write = view_on_write;
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
view_stream_get_type(void)
{
	static GType type;

	if (type == 0)
		type = g_type_register_static_simple(GMIME_TYPE_STREAM,
		    "MailherdStream", sizeof(struct stream_class),
		    on_class_init, sizeof(struct view_stream), NULL, 0);
	return type;
}

GMimeStream *
view_stream_new(const struct view *view)
{
	struct view_stream *s = g_object_new(view_stream_get_type(), NULL);
	gint64 len = (gint64)(view->head_len + (view->end - view->begin));

	s->view = view;
	if (view->n_stitches > 0)
		len += view->stitches[view->n_stitches - 1].shift;
	g_mime_stream_construct(&s->parent, 0, len);
	return &s->parent;
}

int
view_stream_range(GMimeStream *stream, uint64_t *start_r, uint64_t *end_r)
{
	struct view_stream *s = (struct view_stream *)stream;

	if (stream == NULL || G_OBJECT_TYPE(stream) != view_stream_get_type() ||
	    stream->bound_start < (gint64)s->view->head_len ||
	    stream->bound_end < stream->bound_start)
		return -1;
	*start_r = view_offset(s->view, stream->bound_start);
	*end_r = stream->bound_end == stream->bound_start ? *start_r
	    : view_offset(s->view, stream->bound_end - 1) + 1;
	return 0;
}
