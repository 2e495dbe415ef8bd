/*
 * traffic.h - mail that keeps coming by itself.
 */
#ifndef MOCKIMAPD_TRAFFIC_H
#define MOCKIMAPD_TRAFFIC_H

#include "world.h"

struct traffic;
struct traffic *traffic_new(struct world *world);
void traffic_free(struct traffic **traffic);
/* So many messages a second in all, each to the INBOX of a random one of the
 * accounts whose login matches; 0 stops it. */
void traffic_set(struct traffic *traffic, double per_second,
    const char *match);

#endif
