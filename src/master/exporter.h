/*
 * exporter.h - the child that answers Prometheus.
 *
 * Runs in: master.  Never blocks.
 */
#ifndef MASTER_EXPORTER_H
#define MASTER_EXPORTER_H

#include "master/state.h"

struct child;
struct exporter;

/* Does nothing while metrics_listen is empty. */
struct exporter *exporter_new(struct master *m);
void exporter_free(struct exporter **exporter);

/* It asks for the text. */
void exporter_wanted(struct exporter *exporter, struct child *child);
void exporter_ended(struct exporter *exporter, struct child *child);
/* Settings or log have changed. */
void exporter_renew(struct exporter *exporter);
void exporter_stop(struct exporter *exporter);

#endif
