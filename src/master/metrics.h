/*
 * metrics.h - figures for Prometheus, and for the heartbeat.
 *
 * Runs in: master.  Never blocks.
 */
#ifndef MASTER_METRICS_H
#define MASTER_METRICS_H

#include <stdint.h>

struct buf;
struct master;

/* All of it, to be freed. */
char *metrics_text(const struct master *m);
/* One value: mailherd_NAME LABELS; help: NULL but for the first of a name. */
void metrics_gauge(struct buf *out, const char *name, const char *labels,
    const char *help, int64_t value);

/* For the heartbeat (lease/heartbeat.h): JSON, to be freed; arg: the master. */
char *metrics_heartbeat(void *arg);

#endif
