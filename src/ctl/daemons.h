/*
 * daemons.h - the daemons of this host, and asking them.
 *
 * A host usually runs a sync and a jobs daemon, each with its socket; more of
 * a role have an instance name each.  -s, or the setting control_socket, names
 * one.
 */
#ifndef CTL_DAEMONS_H
#define CTL_DAEMONS_H

#include "ctl/ctl.h"

#define SOCKET_PATH_SIZE 512

struct daemon {
	char path[SOCKET_PATH_SIZE];
	const char *role; /* NULL: not known, the path was given */
};

/* The first daemon that listens answers, sync before jobs.  `request` stays
 * the caller's; *role_r NULL: not known. */
int daemons_ask_first(struct ctl *ctl, json_t *request, json_t **reply_r,
    const char **role_r, struct err *err);

typedef void daemons_on_reply(struct ctl *ctl, const struct daemon *daemon,
    json_t *reply, void *arg);
/* Every daemon of this configuration that listens answers; none listening is
 * the only failure. */
int daemons_ask_all(struct ctl *ctl, const char *cmd,
    daemons_on_reply *on_reply, void *arg, struct err *err);

/*
 * The sync daemon of this host that owns the account answers, whatever its
 * instance.  -1: none does; ERR_NETWORK when none listens.
 */
int daemons_ask_owner(struct ctl *ctl, json_t *request, json_t **reply_r,
    struct err *err);

/* An account as daemons know it; an id needs no database, an e-mail does. */
int daemons_account_id(struct ctl *ctl, const char *name,
    char text[UUID_TEXT_SIZE], struct err *err);

/* What a daemon did, as a person is told; with -j its reply. */
void daemons_print_done(const struct ctl *ctl, const char *role,
    json_t *reply, const char *done);

#endif
