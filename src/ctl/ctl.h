/*
 * ctl.h - what every command of mailherdctl works with.
 */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include "base/arena.h"
#include "base/err.h"
#include "conf/conf.h"
#include "ctl/args.h"
#include "ctl/table.h"
#include "redis/client.h"
#include "store/store.h"

#include <stdbool.h>
#include <sys/types.h>

struct ctl {
	struct conf *conf;
	const char *socket; /* -s; NULL: from the configuration */
	bool is_json;
	struct arena *arena; /* dies with the command */
	struct store *store; /* open when the command needs it */
	struct lease_client *redis; /* NULL until ctl_redis() succeeds */
	bool is_redis_away; /* told already; not tried again */
	bool has_daemon; /* root works as this user, see ctl_act_as_daemon */
	uid_t daemon_uid;
	gid_t daemon_gid;
};

/*
 * A command returns 0, or -1 with `err` filled, or an exit code when it has
 * told everything itself.
 */
typedef int command_run(struct ctl *ctl, const struct args *args,
    struct err *err);

/*
 * Who root is for: started by root, mailherdctl works as the user of the
 * daemons (setting "user"), so that PostgreSQL knows it and nothing that it
 * writes is root's.  What only the caller may read is read in between, as the
 * caller.
 */
int ctl_find_daemon(struct ctl *ctl, struct err *err);
void ctl_act_as_daemon(const struct ctl *ctl);
void ctl_act_as_caller(void);

/* Opens ctl->redis unless it is open. */
int ctl_redis(struct ctl *ctl, struct err *err);
/* Opens ctl->store; need_schema: refuses a database that is not of this
 * version, and says what to run. */
int ctl_store(struct ctl *ctl, bool need_schema, struct err *err);

/* "mailherdctl: note: ..." on standard error: something to know, no failure. */
void ctl_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "ERR.text (hint)": what an operator can do about it. */
int ctl_hint(struct err *err, const char *hint);

/* One JSON object as a line, or {"KEY":"UUID"}; takes the reference. */
void ctl_print_json(json_t *object);
void ctl_print_id(const struct ctl *ctl, const char *key,
    const struct uuid *id);

/* An account named by id or e-mail. */
int ctl_account(struct ctl *ctl, const char *name, struct uuid *id_r,
    struct err *err);

/* --- queries ------------------------------------------------------------ */

int ctl_query(struct ctl *ctl, const char *sql, const char *const *params,
    size_t n_params, struct store_rows **rows_r, struct err *err);

#define ROWS_CELL(rows, row, column) \
	((rows)->cells[(row) * (rows)->n_columns + (column)])

/* A listing: the query's columns are the table's, in the same order. */
struct listing {
	const struct column *columns;
	size_t n_columns;
	const char *sql;
	const char *empty; /* what to say when there is nothing */
};
int ctl_list(struct ctl *ctl, const struct listing *listing,
    const char *const *params, size_t n_params, struct err *err);

/* --- telling the daemons ------------------------------------------------ */

/*
 * After a commit.  Redis being away is no failure: the daemons find the
 * change in PostgreSQL at their next sweep; a note on standard error says so.
 */
void announce_state(struct ctl *ctl, const struct uuid *account_id,
    const struct uuid *user_id, enum account_state state, const char *reason);
void announce_job(struct ctl *ctl, const char *queue,
    const struct uuid *job_id);

/* --- colours of words --------------------------------------------------- */

enum tint tint_account_state(const char *cell);
enum tint tint_job_state(const char *cell);
enum tint tint_tier(const char *cell);
enum tint tint_error(const char *cell); /* anything but nothing is bad */
enum tint tint_health(const char *cell); /* ok, up, yes: good; else bad */

#endif
