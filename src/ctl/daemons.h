/*
 * daemons.h - the daemons of this host, and asking them.
 *
 * A host usually runs a sync and a jobs daemon, each with its socket; more of
 * a role have an instance name each.  Questions and orders go to all of them;
 * -s, or the setting control_socket, names one.
 */
#ifndef CTL_DAEMONS_H
#define CTL_DAEMONS_H

#include "ctl/ctl.h"

#define SOCKET_PATH_SIZE 512

struct daemon {
	char path[SOCKET_PATH_SIZE];
	char name[64]; /* "sync-0": role and instance, from the path */
};
struct daemons {
	struct daemon *items;
	size_t n;
};

typedef void daemons_on_reply(struct ctl *ctl, const struct daemon *daemon,
    json_t *reply, void *arg);
/* Every daemon of this host that listens answers, or the one that is named;
 * none listening is a failure, and so is a refusal by any.  `request` stays the
 * caller's. */
int daemons_ask_all(struct ctl *ctl, json_t *request,
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
void daemons_print_done(const struct ctl *ctl, const char *name,
    json_t *reply, const char *done);

#endif
