/*
 * child_channel.h - the master's end of one child's channel.
 *
 * Runs in: master.  Never blocks.
 *
 * What the socket does not take is kept here and sent later, in order.  What
 * is read is handed on as it comes; nobody here knows what it means.
 */
#ifndef MASTER_CHILD_CHANNEL_H
#define MASTER_CHILD_CHANNEL_H

#include "ipc/channel.h"

#include <stddef.h>
#include <stdint.h>

struct event;
struct event_base;
struct queued_frame;

struct child_channel {
	int fd; /* -1: closed */
	uint32_t generation;
	struct event *readable, *writable;
	struct queued_frame *queue; /* frames the socket did not take yet */
	size_t n_queue, cap_queue;
};

/* on_readable(arg) is called while there is something to receive. */
void child_channel_open(struct child_channel *channel,
    struct event_base *base, int fd, uint32_t generation,
    void (*on_readable)(int fd, short what, void *arg), void *arg);
/* What is not yet sent is dropped. */
void child_channel_close(struct child_channel *channel);
void child_channel_release(struct child_channel *channel);
/* Leaves unread what comes, and goes on. */
void child_channel_pause(struct child_channel *channel);
void child_channel_resume(struct child_channel *channel);

enum channel_sent { CHANNEL_SENT, CHANNEL_GONE, CHANNEL_FULL };
/* GONE: the other end is closed, or this one; FULL: the child has not read for
 * very long.  Then it is not sent. */
enum channel_sent child_channel_send(struct child_channel *channel,
    enum msg_type type, const void *payload);
/* As channel_recv(): 1: a frame, 0: none now, -1: it is of no use any more. */
int child_channel_receive(struct child_channel *channel, struct frame *frame,
    struct err *err);

#endif
