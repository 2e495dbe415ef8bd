/*
 * budget_gate.h - the budgets of this worker, and the word of all workers on
 * an account's connections (R-CONN-1).
 *
 * Runs in: master.  Never blocks.
 */
#ifndef MASTER_BUDGET_GATE_H
#define MASTER_BUDGET_GATE_H

struct master;

/* Makes and frees m->budgets and m->conns. */
void budget_gate_start(struct master *m);
void budget_gate_end(struct master *m);
/* A claim may have to be refused by then: after each that waits. */
void budget_gate_watch(struct master *m);

#endif
