/*
 * idle.c - waiting for the server to say something.
 *
 * Runs in: hot children.  Blocks until there is news, the control descriptor
 * is readable, or the time is over.
 *
 * Our own loop: the library's looks at the socket only, while a line may have
 * been read long ago, and does not bear a line before the "+" (L098).
 */
#include "base/clock.h"
#include "base/heap.h"
#include "base/xmem.h"
#include "imap/command.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>

#define IDLE_BUFFER 256 /* bytes; a line of IDLE is short */
/* An IDLE that the server ends by itself so soon, and how many of them in a
 * row mean that it has none. */
#define EARLY_MSECS 10000
#define EARLY_ENDS_MAX 3
/* An IDLE may begin each second, and some more in a burst: whatever a server
 * tells all the time must not keep us busy. */
#define PACE_MSECS 1000
#define BURST_MSECS 30000

struct idle {
	struct imap *r;
	int tag;
	bool is_changed;
	bool is_going; /* "+" has come */
	bool is_over;  /* the tagged line has come */
	struct reply reply;
};

/*
 * A line as sanitize.c leaves it.  "* OK Still here" is nothing new, and neither is
 * an EXISTS that repeats the count as a keep-alive (L041, L093).
 */
static bool
idle_is_news(struct imap *r, const char *line)
{
	struct mailimap_selection_info *info = r->imap->imap_selection_info;
	unsigned long number;
	char *end;

	if (strncmp(line, "* VANISHED", 10) == 0) {
		r->is_exists_known = false;
		return true;
	}
	if (line[0] != '*' || !isdigit((unsigned char)line[2]))
		return false;
	number = strtoul(line + 2, &end, 10);
	if (strncmp(end, " EXISTS", 7) == 0) {
		bool is_same = r->is_exists_known &&
		    info->sel_exists == number;

		info->sel_exists = (uint32_t)number;
		r->is_exists_known = true;
		return !is_same;
	}
	if (strncmp(end, " EXPUNGE", 8) == 0) {
		if (info->sel_exists > 0)
			info->sel_exists--;
		return true;
	}
	return strncmp(end, " FETCH", 6) == 0;
}

static int
idle_read_line(struct idle *idle, struct err *err)
{
	struct imap *r = idle->r;
	const char *line = mailimap_read_line(r->imap);

	if (line == NULL)
		return imap_die(r, stream_error(r->stream), err);
	if (line[0] == '+')
		idle->is_going = true;
	else if (command_is_tagged(line, idle->tag, &idle->reply))
		idle->is_over = true;
	else if (idle_is_news(r, line))
		idle->is_changed = true;
	return 0;
}

static bool
has_line(struct imap *r)
{
	return r->imap->imap_stream->read_buffer_len > 0 ||
	    stream_has_line(r->stream);
}

/* Nothing may be in them. */
static void
resize_buffers(struct imap *r, size_t size)
{
	mailstream *s = r->imap->imap_stream;

	if (s->read_buffer_len > 0 || s->write_buffer_len > 0)
		return;
	s->read_buffer = xrealloc(s->read_buffer, size);
	s->write_buffer = xrealloc(s->write_buffer, size);
	s->buffer_max_size = size;
}

/* What libetpan and malloc keep from the work before. */
static void
idle_slim(struct imap *r)
{
	resize_buffers(r, IDLE_BUFFER);
	mmap_string_free(r->imap->imap_stream_buffer);
	r->imap->imap_stream_buffer = mmap_string_new("");
	if (r->imap->imap_response_info != NULL)
		mailimap_response_info_free(r->imap->imap_response_info);
	r->imap->imap_response_info = NULL;
	stream_slim(r->stream);
	heap_rest();
}

static int
wait_for_news(struct idle *idle, int control_fd, int64_t msecs,
    enum imap_wake *wake_r, struct err *err)
{
	struct imap *r = idle->r;
	int64_t deadline = clock_mono_msecs() + msecs, left;
	struct pollfd fds[2] = {
		{ .fd = stream_fd(r->stream), .events = POLLIN },
		{ .fd = control_fd, .events = POLLIN },
	};

	*wake_r = WAKE_CHANGED;
	for (;;) {
		stream_set_deadline(r->stream, r->command_msecs);
		while (has_line(r) && !idle->is_over)
			if (idle_read_line(idle, err) == -1)
				return -1;
		if (idle->is_changed || idle->is_over)
			return 0;
		left = deadline - clock_mono_msecs();
		if (left <= 0) {
			*wake_r = WAKE_TIMEOUT;
			return 0;
		}
		stream_slim(r->stream);
		if (poll(fds, 2, left > INT32_MAX ? INT32_MAX : (int)left) ==
			-1 &&
		    errno != EINTR) {
			stream_fail(r->stream, ERR_NETWORK, "poll: %s",
			    strerror(errno));
			return imap_die(r, stream_error(r->stream), err);
		}
		if (fds[1].revents != 0) {
			*wake_r = WAKE_CONTROL;
			return 0;
		}
		if (fds[0].revents != 0 && stream_feed(r->stream) == -1)
			return imap_die(r, stream_error(r->stream), err);
	}
}

/* Up to "+"; what comes before it counts. */
static int
idle_begin(struct idle *idle, struct err *err)
{
	struct buf out = BUF_INIT;
	int result;

	stream_set_limits(idle->r->stream, 65536, (uint64_t)16 << 20);
	idle->tag = command_begin(idle->r, &out);
	buf_adds(&out, "IDLE");
	result = command_send(idle->r, &out, err);
	buf_release(&out);
	if (result == 0)
		result = command_settle(idle->r, err);
	while (result == 0 && !idle->is_going && !idle->is_over)
		result = idle_read_line(idle, err);
	if (result == -1)
		return -1;
	return 0;
}

/* Refused, or over before it began: the capability was a mistake. */
static int
has_not_begun(struct idle *idle, enum imap_wake *wake_r, struct err *err)
{
	struct err refused = ERR_INIT;
	struct imap *r = idle->r;

	*wake_r = WAKE_TIMEOUT;
	if (reply_check(r, &idle->reply, "IDLE", &refused) == -1 &&
	    refused.kind != ERR_SERVER) {
		*err = refused;
		return -1;
	}
	log_warn(r->log, "%s has no IDLE (%s): looked at from time to time "
	    "instead", r->host, idle->reply.text);
	r->caps &= ~(unsigned)IMAP_IDLE;
	return 0;
}

static int
idle_finish(struct idle *idle, struct err *err)
{
	struct imap *r = idle->r;

	stream_set_deadline(r->stream, r->command_msecs);
	if (stream_send(r->stream, "DONE\r\n", 6, false) == -1)
		return imap_die(r, stream_error(r->stream), err);
	while (!idle->is_over)
		if (idle_read_line(idle, err) == -1)
			return -1;
	return 0;
}

/* false: something on control_fd came first. */
static bool
keep_pace(struct imap *r, int control_fd)
{
	struct pollfd pfd = { .fd = control_fd, .events = POLLIN };
	int64_t now = clock_mono_msecs();

	r->idle_debt_msecs -= now - r->idle_mono_msecs;
	if (r->idle_debt_msecs < 0)
		r->idle_debt_msecs = 0;
	r->idle_debt_msecs += PACE_MSECS;
	r->idle_mono_msecs = now;
	return r->idle_debt_msecs <= BURST_MSECS ||
	    poll(&pfd, 1, PACE_MSECS) <= 0;
}

/* Ended by the server, without news: a few times at once, and it has no IDLE
 * worth the name; the caller looks from time to time then. */
static void
count_early_end(struct imap *r, int64_t started)
{
	if (clock_mono_msecs() - started >= EARLY_MSECS) {
		r->idle_early_ends = 0;
		return;
	}
	if (++r->idle_early_ends < EARLY_ENDS_MAX)
		return;
	log_warn(r->log, "%s ends IDLE at once: looked at from time to time "
	    "instead", r->host);
	r->caps &= ~(unsigned)IMAP_IDLE;
}

int
imap_idle(struct imap *r, int control_fd, int64_t msecs,
    enum imap_wake *wake_r, struct err *err)
{
	struct idle idle = { .r = r };
	int64_t started;

	if (!r->is_selected)
		return err_set(err, ERR_PERMANENT, "IDLE without a folder");
	*wake_r = WAKE_CONTROL;
	if (!keep_pace(r, control_fd))
		return 0;
	started = clock_mono_msecs();
	if (idle_begin(&idle, err) == -1)
		return -1;
	if (!idle.is_going)
		return has_not_begun(&idle, wake_r, err);
	idle_slim(r);
	if (wait_for_news(&idle, control_fd, msecs, wake_r, err) == -1)
		return -1;
	resize_buffers(r, STREAM_BUFFER);
	if (!idle.is_over && idle_finish(&idle, err) == -1)
		return -1;
	/* Some servers end an IDLE by themselves. */
	if (!idle.is_changed && *wake_r == WAKE_CHANGED) {
		*wake_r = WAKE_TIMEOUT;
		count_early_end(r, started);
	} else {
		r->idle_early_ends = 0;
	}
	if (idle.is_changed)
		*wake_r = WAKE_CHANGED;
	return reply_check(r, &idle.reply, "IDLE", err);
}
