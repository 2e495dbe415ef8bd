/*
 * net.h - a TCP connection to a mail server, within a deadline.
 */
#ifndef NET_NET_H
#define NET_NET_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NET_HOST_SIZE 256

/*
 * The name as it is resolved, sent as SNI and compared with the certificate:
 * without a trailing dot or brackets.  Refuses what is no host name, a path to
 * a unix socket above all.
 */
int net_clean_host(char out[NET_HOST_SIZE], const char *host, struct err *err);
bool net_is_address(const char *host);

/* Before fork: loads what the resolver would else load in each child. */
void net_init(void);

/* Looked at while waiting; -1 gives up with the error it set. */
typedef int net_may_go_on(void *arg, struct err *err);

struct net_wait {
	int64_t deadline_mono_msecs;
	net_may_go_on *may_go_on; /* NULL: nobody is asked */
	void *arg;
};

/* The addresses of a name that were not tried yet. */
struct net_targets;

int net_resolve(const char *host, uint16_t port, const struct net_wait *wait,
    struct net_targets **targets_r, struct err *err);
void net_targets_free(struct net_targets **targets);
size_t net_targets_left(const struct net_targets *targets);
/* The one that was connected to last may be tried once more. */
void net_targets_put_back(struct net_targets *targets);
/*
 * Connects to one of those that are left, and takes it and those that failed
 * out.  Both families are tried in turn, each address a quarter second after
 * the one before it, and the first that answers wins.  The descriptor is
 * non-blocking and close-on-exec.
 */
int net_connect(struct net_targets *targets, const struct net_wait *wait,
    int *fd_r, struct err *err);

#endif
