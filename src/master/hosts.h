/*
 * hosts.h - what this worker has learnt of each mail server: how fast it may
 * be called upon, and what it has asked us to leave alone.
 *
 * Runs in: master of the sync role.  Pure: time is a parameter (mono msecs).
 *
 * Connections to a host are begun at host_connect_rate, with one second's worth
 * at once after a rest, so that 200 accounts turning hot together are no storm
 * (R-TIER-6).  One account that is told "too many connections" or "slow down"
 * is that account's affair; when several are told so within backoff_max, the
 * host means all of us: rate and connections fall for a while, and come back
 * in steps (R-CONN-3).
 */
#ifndef MASTER_HOSTS_H
#define MASTER_HOSTS_H

#include "base/uuid.h"
#include "conf/conf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host;
struct hosts;

struct hosts *hosts_new(void);
void hosts_free(struct hosts **hosts);

/* The host of that name, whatever its case; it stays until it is put back as
 * often as it was taken, and what was learnt a while longer. */
struct host *hosts_acquire(struct hosts *hosts, const char *name, int64_t now);
void hosts_release(struct hosts *hosts, struct host **host, int64_t now);

/* When the next connection may be begun; <= now: at once. */
int64_t host_ready(const struct host *host, const struct conf *conf,
    int64_t now);
void host_begins(struct host *host, const struct conf *conf, int64_t now);

/* At `now` a hot child waits for that: polls, which nobody waits for, let it
 * go first. */
void host_hot_waits(struct host *host, int64_t now);
bool host_has_hot_waiting(const struct host *host, int64_t now);

/* The server asked this account for patience; is_limit: it counts
 * connections, and we have in_use of them. */
void host_complains(struct host *host, const struct conf *conf,
    const struct uuid *account, bool is_limit, size_t in_use, int64_t now);

/* What we allow ourselves now. */
size_t host_cap(const struct host *host, const struct conf *conf,
    int64_t now);
int64_t host_rate(const struct host *host, const struct conf *conf,
    int64_t now);
/* Until when that is less than what is configured; 0: it is not. */
int64_t host_throttled_until(const struct host *host, const struct conf *conf,
    int64_t now);

#endif
