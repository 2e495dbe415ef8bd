/*
 * db.c - a PostgreSQL session with the master's permit for it.
 *
 * Runs in: children.  Blocks on PostgreSQL and on the budget.
 */
#include "account/db.h"

#include <bsd/string.h>

void
account_db_init(struct account_db *db, const struct conf *conf,
    const struct account_hooks *hooks, const char *name)
{
	memset(db, 0, sizeof(*db));
	db->conf = conf;
	db->hooks = hooks;
	strlcpy(db->name, name, sizeof(db->name));
}

static void
db_give_back(struct account_db *db)
{
	db->store = NULL;
	if (db->has_permit)
		db->hooks->give_back(db->hooks->arg, db->permit);
	db->has_permit = false;
}

static void
db_close(struct account_db *db)
{
	store_close(&db->store);
	db_give_back(db);
}

/* What the last account left, under a name that our successor knows. */
static bool
db_take_kept(struct account_db *db)
{
	struct kept_db *kept = db->hooks->kept;
	struct err gone = ERR_INIT;

	if (kept == NULL || kept->db == NULL)
		return false;
	db->store = kept->db;
	db->permit = kept->permit;
	db->has_permit = true;
	kept->db = NULL;
	if (store_rename(db->store, db->name, &gone) == 0)
		return true;
	db_close(db);
	return false;
}

static bool
db_keep(struct account_db *db)
{
	struct kept_db *kept = db->hooks->kept;
	struct err gone = ERR_INIT;

	if (kept == NULL || kept->db != NULL || !db->has_permit ||
	    store_rename(db->store, "mailherd pool", &gone) == -1)
		return false;
	*kept = (struct kept_db){db->store, db->permit};
	db->store = NULL;
	db->has_permit = false;
	return true;
}

static int
db_begin(struct account_db *db, struct err *err)
{
	if (store_open_start(&db->store, db->conf->database, db->name, err) ==
	    0)
		return 0;
	db_give_back(db);
	return -1;
}

int
account_db_start(struct account_db *db, struct err *err)
{
	if (db->store != NULL)
		return 0;
	if (db->does_without_permit)
		return db_begin(db, err);
	if (db->hooks->may_go_on(db->hooks->arg, err) == -1)
		return -1;
	if (db_take_kept(db))
		return 0;
	if (db->hooks->want(db->hooks->arg, RESOURCE_DATABASE, "", 0,
		&db->permit, err) == -1)
		return -1;
	db->has_permit = true;
	return db_begin(db, err);
}

static int
db_finish(struct account_db *db, struct err *err)
{
	if (store_open_finish(&db->store, err) == -1) {
		db_give_back(db);
		return -1;
	}
	if (store_check(db->store, err) == 0)
		return 0;
	db_close(db);
	return -1;
}

int
account_db_open(struct account_db *db, struct err *err)
{
	struct err given_up = ERR_INIT;
	bool was_started = db->store != NULL;

	if (account_db_start(db, err) == -1)
		return -1;
	if (store_is_open(db->store))
		return 0;
	if (!was_started)
		return db_finish(db, err);
	if (store_open_finish(&db->store, &given_up) == 0)
		return db_finish(db, err);
	/* A big message may have taken longer to come than PostgreSQL waits
	 * for somebody to prove who he is. */
	return db_begin(db, err) == -1 ? -1 : db_finish(db, err);
}

void
account_db_pause(struct account_db *db)
{
	if (db->store != NULL && store_is_open(db->store))
		account_db_rest(db);
}

void
account_db_rest(struct account_db *db)
{
	if (db->store != NULL && !db_keep(db))
		db_close(db);
}
