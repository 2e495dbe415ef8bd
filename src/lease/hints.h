/*
 * hints.h - the small keys about accounts and users: tier, pin, open session.
 *
 * Runs in: master.  Never blocks.  Hints: lost ones cost delay, not mail.
 */
#ifndef LEASE_HINTS_H
#define LEASE_HINTS_H

#include "base/uuid.h"
#include "ipc/messages.h"

#include <stdbool.h>
#include <stddef.h>

struct redis;

struct hints {
	char tier[8];		 /* sync:tier:{id}; "" when there is none */
	char pin[8];		 /* sync:pin:{id}: set by an operator */
	int64_t session_msecs;	 /* sess:active:{user}: left; 0: none */
};

/* Asks for many accounts at once; on_hints is called once per account, or not
 * at all when Redis is away. */
void hints_ask(struct redis *redis, const struct uuid *account_ids,
    const struct uuid *user_ids, size_t n,
    void (*on_hints)(void *arg, const struct uuid *account_id,
	const struct hints *hints), void *arg);

void hints_write_tier(struct redis *redis, const struct uuid *account_id,
    const char *tier);
/* "" removes it. */
void hints_write_pin(struct redis *redis, const struct uuid *account_id,
    const char *tier);

/* sync:live, for who has no keeper (R-LEASE-1). */
void hints_set_live(struct redis *redis, const struct uuid *account_id,
    bool is_live);
/* The account is deleted: its tier and pin. */
void hints_forget(struct redis *redis, const struct uuid *account_id);

/* PUBLISH (redis/events.h); dropped when Redis is away. */
void hints_publish(struct redis *redis, const struct msg_event *event);

#endif
