/*
 * channel.h - typed messages over a SOCK_SEQPACKET pair.
 *
 * Frames carry the child's generation, so that the master drops late ones.
 * channel_recv checks version, size, sender and that strings are terminated
 * before anyone sees the payload; nonsense from a child ends that child, never
 * the master.
 */
#ifndef IPC_CHANNEL_H
#define IPC_CHANNEL_H

#include "base/err.h"
#include "ipc/messages.h"

enum msg_type {
#define MSG(symbol, handler, sender, payload) symbol,
#include "ipc/messages.def"
#undef MSG
	MSG_TYPE_COUNT
};

enum msg_sender { FROM_MASTER, FROM_CHILD };

const char *msg_type_name(unsigned type);

struct frame_header {
	uint16_t version;
	uint16_t type;
	uint32_t generation;
	uint32_t size; /* of the payload */
	uint32_t unused;
};

union msg_payload {
#define MSG(symbol, handler, sender, payload) payload handler;
#include "ipc/messages.def"
#undef MSG
};

struct frame {
	struct frame_header header;
	union msg_payload payload;
};

/* Both ends CLOEXEC; -1 with ERR_TEMPORARY. */
int channel_pair(int fds_r[2], struct err *err);

/*
 * Sends one message; `payload` has the size the list says.  Blocking
 * descriptor: waits.  Non-blocking: -1 with ERR_TEMPORARY when full.
 * ERR_GONE: the other side is gone.
 */
int channel_send(int fd, uint32_t generation, enum msg_type type,
    const void *payload, struct err *err);

/*
 * Receives one message that `sender` may send.  1: got one, 0: would block,
 * -1: ERR_GONE (closed) or ERR_PROTOCOL (nonsense; the text says which).
 */
int channel_recv(int fd, enum msg_sender sender, struct frame *frame_r,
    struct err *err);

/* The check alone, for the fuzz target. */
int frame_check(const void *bytes, size_t len, enum msg_sender sender,
    struct frame *frame_r, struct err *err);

#endif
