/*
 * dump.h - SIGUSR2: all that the master knows, a line for each thing.
 *
 * Runs in: master.  Never blocks.
 */
#ifndef MASTER_DUMP_H
#define MASTER_DUMP_H

struct master;

void dump_log(struct master *m);

#endif
