/*
 * db.h - a PostgreSQL session with the master's permit for it.
 *
 * Runs in: children.  Blocks on PostgreSQL and on the budget.
 *
 * It is borrowed: open only while there is something to read or to write, so
 * that a slow mail server holds none.  A session costs PostgreSQL tens of
 * milliseconds, so whoever works for account after account lets the next one
 * go on with it (hooks->kept).
 */
#ifndef ACCOUNT_DB_H
#define ACCOUNT_DB_H

#include "account/hooks.h"
#include "conf/conf.h"

struct account_db {
	const struct conf *conf;
	const struct account_hooks *hooks;
	char name[STORE_NAME_SIZE]; /* what PostgreSQL calls it */
	/* Who is being stopped gets no permit any more, and may have to give
	 * something back before it goes. */
	bool does_without_permit;
	struct store *store; /* NULL: none, and no permit */
	uint32_t permit;
	bool has_permit;
};

/* Copies the name; conf and hooks outlive it. */
void account_db_init(struct account_db *db, const struct conf *conf,
    const struct account_hooks *hooks, const char *name);
/* Open afterwards, with a schema that this program knows. */
int account_db_open(struct account_db *db, struct err *err);
/* It will be needed soon: the permit, and a beginning made. */
int account_db_start(struct account_db *db, struct err *err);
/* Closed, or kept for the next account, and the permit given back. */
void account_db_rest(struct account_db *db);
/* The same, but for one that was only begun. */
void account_db_pause(struct account_db *db);

#endif
