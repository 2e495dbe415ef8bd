/*
 * thread.h - which messages of a batch belong together by their Message-IDs.
 *
 * Private to src/store.  The batch is divided into components here; the
 * server knows which of them belong to threads it has (thread_resolve() in
 * etc/schema/002_write.sql).  So no round trip is needed under the lock.
 */
#ifndef STORE_THREAD_H
#define STORE_THREAD_H

#include "base/banned.h"

#include <stddef.h>
#include <stdint.h>

struct components {
	/* Distinct Message-IDs, own and referenced. */
	int64_t *mids;
	uint32_t *first; /* the message that brought it */
	size_t n_mids, cap_mids;
	/* Open addressing: index into mids + 1, 0 = free. */
	uint32_t *slots;
	size_t n_slots;
	/* Union-find over messages. */
	uint32_t *parent;
	size_t n_messages, cap_messages;
};

void components_init(struct components *c);
void components_release(struct components *c);
void components_reset(struct components *c);

/* A message; returns its number (from 0). */
uint32_t components_message(struct components *c);
/* It is, or refers to, this Message-ID. */
void components_mid(struct components *c, uint32_t message, int64_t mid);
/* Numbers components from 1: comp_r has n_messages elements.  Returns how
 * many there are. */
uint32_t components_number(struct components *c, uint32_t *comp_r);

/*
 * A Message-ID as 64 bits.  SipHash with a key known to all: whoever wants to
 * put a mail into a foreign thread can simply name its Message-ID, so a
 * secret would protect nothing, and every host must get the same number.
 */
int64_t mid_hash(const char *message_id);
/* The same of a subject, without regard to ASCII case. */
int64_t subject_hash(const char *base_subject);
/* An address as address_key() of etc/schema/002_write.sql makes it. */
int32_t address_key(const char *address);

#endif
