/*
 * store_world.h - an account with folders and mail in a real PostgreSQL, for
 * the tests of src/store.
 *
 * Each test has an account of its own, so all share one database.
 */
#ifndef TESTS_STORE_WORLD_H
#define TESTS_STORE_WORLD_H

#include "store/store.h"

#include <check.h>

struct world {
	struct arena *arena;
	struct store *s;
	struct uuid user_id, account_id, job_id;
	struct fence fence;
	struct batch *batch;
	struct commit_result result; /* of the last change */
	struct err err;
	struct folder_refusal refused;
	const char *email;
};

/* What a test says of a message; the rest has a default. */
struct mail {
	uint32_t uid;
	const char *bytes;   /* stands for the content; default: uid */
	const char *id;	     /* Message-ID */
	const char *refs;    /* separated by blanks */
	const char *reply;   /* In-Reply-To */
	const char *subject; /* without prefix */
	bool is_reply;
	const char *from, *to;
	int64_t date; /* days */
	uint32_t flags;
	const char *keywords;
	const char *text;
};

/* main() of such a test: a database with the schema, then the suite. */
int world_run(Suite *suite);

const char *world_db(void);
void world_open(struct world *w);
void world_close(struct world *w);
/* Another session for the account, as a sibling child has. */
struct store *world_session(struct world *w);

/* A new folder, loaded. */
struct folder *world_folder(struct world *w, const char *name);
/* The folder as it is now. */
struct folder *world_reload(struct world *w, int64_t id);

struct blob_ref mail_blob(struct world *w, const struct mail *m);
struct place mail_place(const struct mail *m);
void world_add(struct world *w, const struct mail *m);
/* The batch goes into the folder; cursor moves to uidnext. */
int world_try_commit(struct world *w, struct folder *f, uint32_t uidnext);
void world_commit(struct world *w, struct folder *f);
/* One message, one transaction; returns its id (0: nothing was created). */
int64_t world_deliver(struct world *w, struct folder *f,
    const struct mail *m);
void world_apply(struct world *w, struct folder *f, const struct mail *flags,
    size_t n_flags, const uint32_t *gone, size_t n_gone);

/* UIDVALIDITY changed: all rows without UID, with a cursor again. */
void world_remap(struct world *w, struct folder *f);

/* What the folder held is gone with it (FOLDER_VANISH came before). */
void world_empty(struct world *w, struct folder *f);

/* First cell of a query. */
int64_t world_int(struct world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
const char *world_text(struct world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The account's id as an SQL literal. */
const char *world_account(struct world *w);
int64_t world_thread(struct world *w, int64_t message_id);

#define must(rc, w) \
	ck_assert_msg((rc) == 0, "%s:%d: %s", __FILE__, __LINE__, (w)->err.text)

#endif
