/*
 * roles.h - which folder is Sent, Drafts, ...  Pure.
 */
#ifndef SYNC_ROLES_H
#define SYNC_ROLES_H

#include "conf/conf.h"
#include "imap/imap.h"

/* INBOX is the one name compared without case (L058). */
bool is_inbox_name(const char *wire);

/* The role that people give a folder of this name, from the additions of the
 * configuration and the built-in table; rank: how good a match (lower is
 * better). */
enum folder_role role_by_name(const struct conf *conf, const char *path,
    char delimiter, unsigned *rank_r);

/*
 * One role for each listed folder.  INBOX by name; then the server's flags;
 * then names, for the roles that no flag gave away (L067).  Of several that
 * claim a role the one that has it already (`local`) keeps it.
 */
void roles_assign(struct arena *arena, const struct conf *conf,
    const struct imap_folder *listed, size_t n_listed,
    const struct folder *local, size_t n_local, enum folder_role *role_r);

#endif
