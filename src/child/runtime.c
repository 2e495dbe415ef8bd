/*
 * runtime.c - what every child has: its channel to the master.
 *
 * Runs in: children.  Blocking.
 *
 * The master answers requests in its own time and may send commands in
 * between; those are kept until the loop asks for them.  A master that is gone
 * ends the process: nothing a child does may outlive its supervisor.
 */
#include "child/runtime.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/xmem.h"
#include "proc/slots.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <unistd.h>

/* The master answers UNSEAL at once, the clerk in its turn; who does not is
 * stuck. */
#define ANSWER_MSECS 30000
/* It answers a WANT when its time is up; this much grace. */
#define GRACE_MSECS 5000

void
runtime_init(struct runtime *rt, const struct child_start *start)
{
	struct msg_hello hello = {
		.pid = (int32_t)getpid(),
		.version = IPC_VERSION,
	};

	memset(rt, 0, sizeof(*rt));
	rt->channel = start->channel;
	rt->generation = start->generation;
	rt->slot = SLOT_NONE;
	log_init(&rt->log, LOG_CORE, "kind=%s",
	    child_kind_name(start->kind));
	runtime_use_slot(rt, start->slot);
	runtime_send(rt, MSG_HELLO, &hello);
}

void
runtime_use_slot(struct runtime *rt, uint32_t slot)
{
	if (rt->slot != SLOT_NONE)
		slot_disarm();
	rt->slot = slot;
	rt->is_lease_lost = false;
	if (slot != SLOT_NONE)
		slot_arm(slot);
}

void
runtime_send(struct runtime *rt, enum msg_type type, const void *payload)
{
	struct err err = ERR_INIT;

	if (channel_send(rt->channel, rt->generation, type, payload,
		&err) == -1)
		_exit(EXIT_MASTER_GONE);
}

/* --- receiving ----------------------------------------------------------- */

/* 1: readable, 0: time is up. */
static int
runtime_wait_readable(int fd, int64_t msecs)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int64_t deadline = clock_mono_msecs() + msecs;
	int rv;

	for (;;) {
		rv = poll(&pfd, 1, msecs < 0 ? -1 :
		    msecs > INT32_MAX ? INT32_MAX : (int)msecs);
		if (rv >= 0 || errno != EINTR)
			return rv > 0;
		if (msecs < 0)
			continue;
		msecs = deadline - clock_mono_msecs();
		if (msecs < 0)
			return 0;
	}
}

/* From the channel; the log level is nobody else's business. */
static int
runtime_receive(struct runtime *rt, struct frame *frame, int64_t msecs)
{
	struct err err = ERR_INIT;
	const struct msg_log_level *level;

	for (;;) {
		if (!runtime_wait_readable(rt->channel, msecs))
			return 0;
		switch (channel_recv(rt->channel, FROM_MASTER, frame, &err)) {
		case 0:
			continue;
		case 1:
			break;
		default:
			if (err.kind == ERR_GONE)
				_exit(EXIT_MASTER_GONE);
			die_bug("from the master: %s", err.text);
		}
		if (frame->header.type == MSG_STOP)
			rt->is_stopping = true;
		if (frame->header.type == MSG_JOB_YIELD) {
			rt->must_yield = true;
			continue;
		}
		if (frame->header.type != MSG_LOG_LEVEL)
			return 1;
		level = &frame->payload.log_level;
		if (level->subsystem >= 0)
			log_set_debug(level->subsystem,
			    level->level == LOG_LEVEL_DEBUG);
		else
			log_set_level(level->level);
	}
}

/* Answers that came too late are nobody's: a grant is given back. */
static void
runtime_keep(struct runtime *rt, const struct frame *frame)
{
	if (frame->header.type == MSG_SECRET ||
	    frame->header.type == MSG_BRIEFED)
		return;
	if (frame->header.type == MSG_GRANT) {
		if (frame->payload.grant.is_granted)
			runtime_give_back(rt, frame->payload.grant.want_id);
		return;
	}
	GROW(rt->kept, rt->n_kept, rt->cap_kept);
	rt->kept[rt->n_kept++] = *frame;
}

int
runtime_next(struct runtime *rt, struct frame *frame, int64_t msecs)
{
	if (rt->n_kept == 0)
		return runtime_receive(rt, frame, msecs);
	*frame = rt->kept[0];
	rt->n_kept--;
	memmove(rt->kept, rt->kept + 1, rt->n_kept * sizeof(*rt->kept));
	return 1;
}

int
runtime_may_go_on(struct runtime *rt, struct err *err)
{
	struct frame frame;

	if (rt->slot != SLOT_NONE &&
	    slot_deadline(rt->slot) <= clock_boot_msecs()) {
		rt->is_lease_lost = true;
		return err_set(err, ERR_FENCED, "the lease has run out");
	}
	while (runtime_receive(rt, &frame, 0) == 1)
		runtime_keep(rt, &frame);
	if (rt->is_stopping)
		return err_set(err, ERR_STOPPED, "asked to stop");
	return 0;
}

/* The answer of this type (for a grant: with this id); others are kept. */
static int
runtime_await(struct runtime *rt, enum msg_type type, uint32_t want_id,
    struct frame *frame, int64_t msecs, struct err *err)
{
	int64_t deadline = clock_mono_msecs() + msecs, left;

	for (;;) {
		left = deadline - clock_mono_msecs();
		if (left < 0 || runtime_receive(rt, frame, left) == 0)
			return err_set(err, ERR_TEMPORARY, "no answer from "
			    "the master (%s)", msg_type_name(type));
		if (frame->header.type == type && (type != MSG_GRANT ||
			frame->payload.grant.want_id == want_id))
			return 0;
		runtime_keep(rt, frame);
		if (rt->is_stopping)
			return err_set(err, ERR_STOPPED, "asked to stop");
	}
}

/* --- requests ------------------------------------------------------------ */

static const char *
resource_name(enum resource resource)
{
	static const char *const names[RESOURCE_COUNT] = {
		[RESOURCE_SOCKET] = "a socket to the server",
		[RESOURCE_ACCOUNT] = "a connection of the account",
		[RESOURCE_LOGIN] = "a turn to log in",
		[RESOURCE_PARSE] = "a parse slot",
		[RESOURCE_DATABASE] = "a PostgreSQL session",
	};

	return names[resource];
}

int
runtime_want(struct runtime *rt, enum resource resource, const char *host,
    uint16_t port, bool is_idle, int64_t msecs, uint32_t *want_id_r,
    struct err *err)
{
	struct msg_want want;
	struct frame frame;
	const struct msg_grant *grant = &frame.payload.grant;

	memset(&want, 0, sizeof(want));
	want.want_id = ++rt->next_want_id;
	want.resource = resource;
	want.port = port;
	want.is_idle = is_idle;
	want.wait_msecs = msecs;
	snprintf(want.host, sizeof(want.host), "%s", host);
	runtime_send(rt, MSG_WANT, &want);
	if (runtime_await(rt, MSG_GRANT, want.want_id, &frame,
		msecs + GRACE_MSECS, err) == -1)
		return -1;
	if (!grant->is_granted) {
		/* Ours, not the provider's: not ERR_THROTTLED. */
		err_set(err, ERR_TEMPORARY, "%s was not to be had: %s",
		    resource_name(resource), grant->reason);
		err->retry_after_secs =
		    (uint32_t)((grant->retry_msecs + 999) / 1000);
		return -1;
	}
	*want_id_r = want.want_id;
	return 0;
}

void
runtime_give_back(struct runtime *rt, uint32_t want_id)
{
	struct msg_give_back msg = { .want_id = want_id };

	runtime_send(rt, MSG_GIVE_BACK, &msg);
}

int
runtime_unseal(struct runtime *rt, const struct seal_bond *bond,
    const struct sealed *sealed, char *secret_r, size_t size,
    struct err *err)
{
	struct msg_unseal msg;
	struct frame frame;
	struct msg_secret *secret = &frame.payload.secret;
	int rv = 0;

	memset(&msg, 0, sizeof(msg));
	if (sealed->len > sizeof(msg.sealed))
		return err_set(err, ERR_CONFIG, "the sealed secret is %zu "
		    "bytes long", sealed->len);
	msg.account_id = bond->account_id;
	memcpy(msg.address, bond->address, sizeof(msg.address));
	msg.len = (uint32_t)sealed->len;
	memcpy(msg.sealed, sealed->bytes, sealed->len);
	runtime_send(rt, MSG_UNSEAL, &msg);
	if (runtime_await(rt, MSG_SECRET, 0, &frame, ANSWER_MSECS, err) == -1)
		return -1;
	if (!secret->is_open)
		rv = err_set(err, ERR_CONFIG, "the secret does not open: %s",
		    secret->reason);
	else if (secret->len >= size || secret->len >= sizeof(secret->bytes))
		rv = err_set(err, ERR_CONFIG, "the secret is too long");
	else {
		memcpy(secret_r, secret->bytes, secret->len);
		secret_r[secret->len] = '\0';
	}
	explicit_bzero(&frame, sizeof(frame));
	return rv;
}

int
runtime_brief(struct runtime *rt, struct msg_briefing *briefing_r)
{
	static const struct msg_empty nothing;
	struct err unheard = ERR_INIT;
	struct frame frame;

	runtime_send(rt, MSG_BRIEF_ME, &nothing);
	if (runtime_await(rt, MSG_BRIEFED, 0, &frame, ANSWER_MSECS, &unheard) ==
	    -1) {
		log_debug(&rt->log, "%s", unheard.text);
		return -1;
	}
	*briefing_r = frame.payload.briefed;
	return 0;
}

void
runtime_activity(struct runtime *rt, const char *fmt, ...)
{
	struct msg_activity msg;
	char text[128];
	va_list ap;

	memset(&msg, 0, sizeof(msg));
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_clean_line(msg.text, sizeof(msg.text), text, strlen(text));
	if (strcmp(msg.text, rt->activity) == 0)
		return;
	snprintf(rt->activity, sizeof(rt->activity), "%s", msg.text);
	runtime_send(rt, MSG_ACTIVITY, &msg);
}

enum child_exit
runtime_exit_code(const struct runtime *rt, const struct err *err)
{
	switch (err->kind) {
	case ERR_NONE:
	case ERR_STOPPED:
		return EXIT_DONE;
	case ERR_AUTH:
		return EXIT_AUTH;
	case ERR_FENCED:
		return rt->is_lease_lost ? EXIT_LEASE_LOST : EXIT_FENCED;
	case ERR_CONFIG:
		return EXIT_CONFIG;
	default:
		return EXIT_RETRY;
	}
}
