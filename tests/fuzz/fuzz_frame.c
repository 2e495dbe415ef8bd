/*
 * fuzz_frame.c - what a child that was taken over might send to its master,
 * and the other way round.  The first byte says who sends.
 */
#include "ipc/channel.h"

#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum msg_sender sender;
	struct frame frame;
	struct err err = ERR_INIT;

	if (size == 0)
		return 0;
	sender = data[0] & 1 ? FROM_CHILD : FROM_MASTER;
	if (frame_check(data + 1, size - 1, sender, &frame, &err) == -1) {
		if (err.kind != ERR_PROTOCOL)
			abort();
		return 0;
	}
	/* what handlers rely on */
	if (frame.header.type >= MSG_TYPE_COUNT ||
	    frame.header.size != size - 1 - sizeof(frame.header))
		abort();
	if (frame.header.type == MSG_EVENT &&
	    (frame.payload.event.n_ids > MSG_IDS_MAX ||
		strlen(frame.payload.event.name) >= MSG_TEXT_SIZE))
		abort();
	return 0;
}
