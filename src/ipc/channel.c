/*
 * channel.c - one frame, one packet, checked before anyone sees it.
 *
 * Runs in: master (non-blocking) and children (blocking).
 *
 * The sender may be taken over by hostile mail, so a frame is believed only as
 * far as the two lists next door say: messages.def gives size and sender,
 * checks.def the strings, counts and enumerations inside.  What this does not
 * check is meaning: whether an id is one that this child may speak of.
 */
#include "ipc/channel.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>

static const struct {
	const char *name;
	uint32_t size;
	enum msg_sender sender;
} types[MSG_TYPE_COUNT] = {
#define MSG(symbol, handler, sender, payload) \
	[symbol] = { #symbol, sizeof(payload), sender },
#include "ipc/messages.def"
#undef MSG
};

struct check {
	const char *field;
	uint32_t offset;
	uint32_t size;	/* of a string; 0: a number */
	uint32_t limit; /* of a number */
	enum msg_type type;
};

static const struct check checks[] = {
#define STRING(symbol, payload, field)                           \
	{ #field, offsetof(payload, field),                      \
		sizeof(((payload *)NULL)->field), 0, symbol },
#define BELOW(symbol, payload, field, limit) \
	{ #field, offsetof(payload, field), 0, limit, symbol },
#include "ipc/checks.def"
#undef STRING
#undef BELOW
};

#define BELOW(symbol, payload, field, limit)                                \
	_Static_assert(sizeof(((payload *)NULL)->field) == sizeof(uint32_t), \
	    #payload "." #field " is checked as 32 bits");
#define STRING(symbol, payload, field)
#include "ipc/checks.def"
#undef STRING
#undef BELOW

/* Received in one piece: nothing may lie between header and payload. */
_Static_assert(offsetof(struct frame, payload) == sizeof(struct frame_header),
    "struct frame has padding");

const char *
msg_type_name(unsigned type)
{
	return type < MSG_TYPE_COUNT ? types[type].name : "unknown message";
}

const char *
event_name(enum event_name event)
{
	static const char *const names[EVENT_COUNT] = {
#define X(symbol, name) [symbol] = name,
		EVENTS(X)
#undef X
	};

	return (unsigned)event < EVENT_COUNT ? names[event] : "unknown";
}

int
channel_pair(int fds_r[2], struct err *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds_r) == -1)
		return err_set(err, ERR_TEMPORARY, "no channel for a child: %s",
		    strerror(errno));
	return 0;
}

int
channel_send(int fd, uint32_t generation, enum msg_type type,
    const void *payload, struct err *err)
{
	struct frame_header header = {
		.version = IPC_VERSION,
		.type = (uint16_t)type,
		.generation = generation,
		.size = types[type].size,
	};
	struct iovec iov[2] = {
		{ &header, sizeof(header) },
		{ (void *)(uintptr_t)payload, types[type].size },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n;

	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (n == -1 && errno == EINTR);
	if (n != -1)
		return 0; /* a packet goes as a whole or not at all */
	if (errno == EPIPE || errno == ECONNRESET)
		return err_set(err, ERR_GONE, "%s not sent: channel closed",
		    types[type].name);
	return err_set(err, ERR_TEMPORARY, "%s not sent: %s", types[type].name,
	    strerror(errno));
}

static int
payload_check(const struct check *check, const char *payload, struct err *err)
{
	uint32_t number;

	if (check->size != 0) {
		if (memchr(payload + check->offset, '\0', check->size) != NULL)
			return 0;
		return err_set(err, ERR_PROTOCOL, "%s: %s is not terminated",
		    types[check->type].name, check->field);
	}
	memcpy(&number, payload + check->offset, sizeof(number));
	if (number < check->limit)
		return 0;
	return err_set(err, ERR_PROTOCOL, "%s: %s is %u, not below %u",
	    types[check->type].name, check->field, number, check->limit);
}

static int
header_check(const struct frame_header *header, size_t payload_len,
    enum msg_sender sender, struct err *err)
{
	if (header->version != IPC_VERSION)
		return err_set(err, ERR_PROTOCOL,
		    "frame of version %u instead of %u", header->version,
		    IPC_VERSION);
	if (header->type >= MSG_TYPE_COUNT)
		return err_set(err, ERR_PROTOCOL, "frame of unknown type %u",
		    header->type);
	if (types[header->type].sender != sender)
		return err_set(err, ERR_PROTOCOL, "%s is not for a %s to send",
		    types[header->type].name,
		    sender == FROM_CHILD ? "child" : "master");
	if (header->size != types[header->type].size ||
	    header->size != payload_len)
		return err_set(err, ERR_PROTOCOL,
		    "%s of %zu bytes (said: %u) instead of %u",
		    types[header->type].name, payload_len, header->size,
		    types[header->type].size);
	return 0;
}

int
frame_check(const void *bytes, size_t len, enum msg_sender sender,
    struct frame *frame_r, struct err *err)
{
	size_t i;

	if (len < sizeof(struct frame_header) || len > sizeof(*frame_r))
		return err_set(err, ERR_PROTOCOL, "frame of %zu bytes", len);
	if (bytes != frame_r)
		memcpy(frame_r, bytes, len);
	if (header_check(&frame_r->header, len - sizeof(frame_r->header),
		sender, err) == -1)
		return -1;
	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (checks[i].type == frame_r->header.type &&
		    payload_check(&checks[i],
			(const char *)&frame_r->payload, err) == -1)
			return -1;
	return 0;
}

/*
 * A side that closes with something unread leaves ECONNRESET behind, before
 * the packets it had sent: those are its last words, and it is read once, so
 * go on until the end of file.
 */
static ssize_t
channel_receive(int fd, struct frame *frame_r)
{
	ssize_t n;

	do
		n = recv(fd, frame_r, sizeof(*frame_r), MSG_TRUNC);
	while (n == -1 && (errno == EINTR || errno == ECONNRESET));
	return n;
}

int
channel_recv(int fd, enum msg_sender sender, struct frame *frame_r,
    struct err *err)
{
	ssize_t n = channel_receive(fd, frame_r);

	if (n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n == -1)
		return err_set(err, ERR_GONE, "channel: %s", strerror(errno));
	if (n == 0)
		return err_set(err, ERR_GONE, "channel closed");
	return frame_check(frame_r, (size_t)n, sender, frame_r, err) == -1 ?
	    -1 : 1;
}
