/*
 * attach.c - the loop reads and writes for a connection of hiredis.
 *
 * Runs in: master.  Never blocks.
 */
#include "redis/attach.h"

#include "base/xmem.h"
#include "redis/loop.h"

#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#include <stdlib.h>

struct attached {
	redisAsyncContext *ac;
	struct event *readable;
	struct event *writable;
};

static void
attach_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct attached *at = arg;

	(void)fd;
	(void)what;
	redisAsyncHandleRead(at->ac);
}

static void
attach_on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct attached *at = arg;

	(void)fd;
	(void)what;
	redisAsyncHandleWrite(at->ac);
}

static void
add_read(void *arg)
{
	event_add(((struct attached *)arg)->readable, NULL);
}

static void
del_read(void *arg)
{
	event_del(((struct attached *)arg)->readable);
}

static void
add_write(void *arg)
{
	event_add(((struct attached *)arg)->writable, NULL);
}

static void
del_write(void *arg)
{
	event_del(((struct attached *)arg)->writable);
}

/* By hiredis, when it gives the connection up. */
static void
clean_up(void *arg)
{
	struct attached *at = arg;

	event_free(at->readable);
	event_free(at->writable);
	free(at);
}

void
attach_to_loop(redisAsyncContext *ac, struct event_base *base)
{
	struct attached *at = xcalloc(1, sizeof(*at));

	at->ac = ac;
	at->readable = event_new(
	    base, ac->c.fd, EV_READ | EV_PERSIST, attach_on_readable, at);
	at->writable = event_new(
	    base, ac->c.fd, EV_WRITE | EV_PERSIST, attach_on_writable, at);
	/* No matter in a loop without priorities. */
	event_priority_set(at->readable, LOOP_REDIS);
	event_priority_set(at->writable, LOOP_REDIS);
	ac->ev.addRead = add_read;
	ac->ev.delRead = del_read;
	ac->ev.addWrite = add_write;
	ac->ev.delWrite = del_write;
	ac->ev.cleanup = clean_up;
	ac->ev.data = at;
	/* The connection is under way: it is writable when it stands. */
	event_add(at->readable, NULL);
	event_add(at->writable, NULL);
}
