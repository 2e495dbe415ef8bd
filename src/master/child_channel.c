/*
 * child_channel.c - the master's end of one child's channel.
 *
 * Runs in: master.  Never blocks.
 */
#include "master/child_channel.h"

#include "base/log.h"
#include "base/xmem.h"

#include <event2/event.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Frames a child may leave unread; honest ones read within milliseconds. */
#define QUEUE_MAX 256

struct queued_frame {
	enum msg_type type;
	union msg_payload payload;
};

static void
channel_send_queue(struct child_channel *channel)
{
	struct err err = ERR_INIT;
	size_t sent;

	for (sent = 0; sent < channel->n_queue; sent++)
		if (channel_send(channel->fd, channel->generation,
			channel->queue[sent].type,
			&channel->queue[sent].payload, &err) == -1)
			break;
	channel->n_queue -= sent;
	memmove(channel->queue, channel->queue + sent,
	    channel->n_queue * sizeof(*channel->queue));
	if (channel->n_queue > 0 && err.kind == ERR_TEMPORARY)
		event_add(channel->writable, NULL);
}

static void
channel_on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	channel_send_queue(arg);
}

void
child_channel_open(struct child_channel *channel, struct event_base *base,
    int fd, uint32_t generation, void (*on_readable)(int, short, void *),
    void *arg)
{
	channel->fd = fd;
	channel->generation = generation;
	channel->readable = event_new(base, fd, EV_READ | EV_PERSIST,
	    on_readable, arg);
	channel->writable = event_new(base, fd, EV_WRITE,
	    channel_on_writable, channel);
	event_add(channel->readable, NULL);
}

void
child_channel_close(struct child_channel *channel)
{
	if (channel->fd == -1)
		return;
	event_del(channel->readable);
	event_del(channel->writable);
	close(channel->fd);
	channel->fd = -1;
	channel->n_queue = 0;
}

void
child_channel_release(struct child_channel *channel)
{
	child_channel_close(channel);
	event_free(channel->readable);
	event_free(channel->writable);
	free(channel->queue);
}

void
child_channel_pause(struct child_channel *channel)
{
	event_del(channel->readable);
}

void
child_channel_resume(struct child_channel *channel)
{
	event_add(channel->readable, NULL);
}

static size_t
channel_payload_size(enum msg_type type)
{
	switch (type) {
#define MSG(symbol, handler, sender, payload) \
	case symbol:                          \
		return sizeof(payload);
#include "ipc/messages.def"
#undef MSG
	default:
		die_bug("message type %d", type);
	}
}

enum channel_sent
child_channel_send(struct child_channel *channel, enum msg_type type,
    const void *payload)
{
	struct err err = ERR_INIT;

	if (channel->fd == -1)
		return CHANNEL_GONE;
	if (channel->n_queue == 0 && channel_send(channel->fd,
		channel->generation, type, payload, &err) == 0)
		return CHANNEL_SENT;
	if (channel->n_queue == 0 && err.kind != ERR_TEMPORARY)
		return CHANNEL_GONE;
	if (channel->n_queue >= QUEUE_MAX)
		return CHANNEL_FULL;
	GROW(channel->queue, channel->n_queue, channel->cap_queue);
	channel->queue[channel->n_queue].type = type;
	memcpy(&channel->queue[channel->n_queue].payload, payload,
	    channel_payload_size(type));
	channel->n_queue++;
	event_add(channel->writable, NULL);
	return CHANNEL_SENT;
}

int
child_channel_receive(struct child_channel *channel, struct frame *frame,
    struct err *err)
{
	return channel_recv(channel->fd, FROM_CHILD, frame, err);
}
