/*
 * thread.c - which messages of a batch belong together by their Message-IDs.
 *
 * Runs in: hot, pool and job children.  Never blocks.
 *
 * Two messages that name the same Message-ID, be it as their own or as a
 * reference, are one component.  Self-references and loops are only names
 * that were there already.
 */
#include "store/thread.h"

#include "base/buf.h"
#include "base/xmem.h"

#include <sodium.h>

static const unsigned char key[crypto_shorthash_KEYBYTES] = "mailherd thread";

static int64_t
thread_hash(const char *p, size_t len)
{
	unsigned char out[crypto_shorthash_BYTES];
	uint64_t v = 0;
	size_t i;

	crypto_shorthash(out, (const unsigned char *)p, len, key);
	for (i = 0; i < 8; i++)
		v = v << 8 | out[i];
	return (int64_t)v;
}

int64_t
mid_hash(const char *message_id)
{
	return thread_hash(message_id, strlen(message_id));
}

static void
add_lower(struct buf *out, const char *p)
{
	for (; *p != '\0'; p++)
		buf_addc(out, *p >= 'A' && *p <= 'Z' ?
		    (char)(*p - 'A' + 'a') : *p);
}

int64_t
subject_hash(const char *base_subject)
{
	struct buf lower = BUF_INIT;
	int64_t v;

	add_lower(&lower, base_subject);
	v = thread_hash(buf_str(&lower), lower.len);
	buf_release(&lower);
	return v;
}

int32_t
address_key(const char *address)
{
	unsigned char out[crypto_hash_sha256_BYTES];
	struct buf lower = BUF_INIT;

	add_lower(&lower, address);
	crypto_hash_sha256(out, (const unsigned char *)buf_str(&lower),
	    lower.len);
	buf_release(&lower);
	return (int32_t)((uint32_t)out[0] << 24 | (uint32_t)out[1] << 16 |
	    (uint32_t)out[2] << 8 | out[3]);
}

void
components_init(struct components *c)
{
	*c = (struct components){ 0 };
}

void
components_release(struct components *c)
{
	free(c->mids);
	free(c->first);
	free(c->slots);
	free(c->parent);
	components_init(c);
}

void
components_reset(struct components *c)
{
	c->n_mids = c->n_messages = 0;
	if (c->n_slots > 0)
		memset(c->slots, 0, c->n_slots * sizeof(*c->slots));
}

uint32_t
components_message(struct components *c)
{
	GROW(c->parent, c->n_messages, c->cap_messages);
	c->parent[c->n_messages] = (uint32_t)c->n_messages;
	return (uint32_t)c->n_messages++;
}

static uint32_t
root_of(struct components *c, uint32_t i)
{
	while (c->parent[i] != i)
		i = c->parent[i] = c->parent[c->parent[i]];
	return i;
}

/* The hash is uniform already. */
static uint32_t *
slot_of(struct components *c, int64_t mid)
{
	size_t i = (size_t)mid & (c->n_slots - 1);

	while (c->slots[i] != 0 && c->mids[c->slots[i] - 1] != mid)
		i = (i + 1) & (c->n_slots - 1);
	return &c->slots[i];
}

static void
thread_grow_slots(struct components *c)
{
	size_t i;

	if (c->n_mids * 2 < c->n_slots)
		return;
	free(c->slots);
	c->n_slots = c->n_slots == 0 ? 1024 : c->n_slots * 2;
	c->slots = xcalloc(c->n_slots, sizeof(*c->slots));
	for (i = 0; i < c->n_mids; i++)
		*slot_of(c, c->mids[i]) = (uint32_t)i + 1;
}

void
components_mid(struct components *c, uint32_t message, int64_t mid)
{
	uint32_t *slot, a, b;

	thread_grow_slots(c);
	slot = slot_of(c, mid);
	if (*slot == 0) {
		if (c->n_mids >= c->cap_mids) {
			c->cap_mids = c->cap_mids == 0 ? 512 : c->cap_mids * 2;
			c->mids = xreallocarray(c->mids, c->cap_mids,
			    sizeof(*c->mids));
			c->first = xreallocarray(c->first, c->cap_mids,
			    sizeof(*c->first));
		}
		c->mids[c->n_mids] = mid;
		c->first[c->n_mids] = message;
		*slot = (uint32_t)++c->n_mids;
		return;
	}
	a = root_of(c, c->first[*slot - 1]);
	b = root_of(c, message);
	if (a < b)
		c->parent[b] = a;
	else
		c->parent[a] = b;
}

uint32_t
components_number(struct components *c, uint32_t *comp_r)
{
	uint32_t i, root, n = 0;

	/* A root is the smallest of its component and so numbered first. */
	for (i = 0; i < c->n_messages; i++) {
		root = root_of(c, i);
		comp_r[i] = root == i ? ++n : comp_r[root];
	}
	return n;
}
