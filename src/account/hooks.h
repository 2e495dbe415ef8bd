/*
 * hooks.h - what work on an account needs of the process around it.
 *
 * So that it can run in any child, and without a master (mailherd -1).
 */
#ifndef ACCOUNT_HOOKS_H
#define ACCOUNT_HOOKS_H

#include "base/err.h"
#include "ipc/messages.h"
#include "proc/slots.h"
#include "proc/vault.h"
#include "store/store.h"

/* A PostgreSQL session, with its permit, that the next account goes on with. */
struct kept_db {
	struct store *db; /* NULL: none */
	uint32_t permit;
};

struct account_hooks {
	/* Budgets; the id is for giving back. */
	int (*want)(void *arg, enum resource resource, const char *host,
	    uint16_t port, uint32_t *id_r, struct err *err);
	void (*give_back)(void *arg, uint32_t id);
	/* -1: end now (lease lost, stop).  Before every slow step. */
	int (*may_go_on)(void *arg, struct err *err);
	/* The risky step about to be taken; a plain memory write. */
	void (*note)(void *arg, const struct slot_note *note);
	/* Only after commit. */
	void (*emit)(void *arg, const struct msg_event *event);
	void (*activity)(void *arg, const char *text);
	int (*unseal)(void *arg, const struct seal_bond *bond,
	    const struct sealed *sealed, char *secret_r, size_t size,
	    struct err *err);
	/* Somebody who had less waits for this process: a backfill ends soon
	 * and goes on in another turn.  NULL: never. */
	bool (*must_yield)(void *arg);
	/* Account and INBOX, read by somebody else (account_brief); -1: not to
	 * be had.  NULL: the session reads for itself. */
	int (*brief)(void *arg, struct msg_briefing *b_r);
	struct kept_db *kept; /* NULL: every session is closed after use */
	void *arg;
};

#endif
