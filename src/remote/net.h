/*
 * net.h - a TCP connection to a mail server, within a deadline.
 */
#ifndef REMOTE_NET_H
#define REMOTE_NET_H

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

/*
 * Resolves and connects.  Addresses of both families are tried in turn, each
 * a quarter second after the one before it, and the first that answers wins.
 * The descriptor is non-blocking and close-on-exec.
 */
int net_connect(const char *host, uint16_t port, int64_t deadline_mono_msecs,
    net_may_go_on *may_go_on, void *arg, int *fd_r, struct err *err);

#endif
