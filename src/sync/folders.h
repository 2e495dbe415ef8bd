/*
 * folders.h - our folders and a LIST: what to create, rename, forget.  Pure.
 */
#ifndef SYNC_FOLDERS_H
#define SYNC_FOLDERS_H

#include "conf/conf.h"
#include "imap/imap.h"
#include "store/store.h"

/*
 * A LIST made comparable: INBOX under that one name, listed once, and added
 * where a server hides it.  *is_whole_r false: the list did not show INBOX, so
 * it proves no absence (L063).
 */
void folders_normalise(struct arena *arena,
    const struct imap_folder *listed, size_t n_listed,
    struct imap_folder **whole_r, size_t *n_r, bool *is_whole_r);

/* Which of the listed we do not have: they need a STATUS before the diff. */
void folders_unknown(struct arena *arena, const struct folder *local,
    size_t n_local, const struct imap_folder *listed, size_t n_listed,
    bool *unknown_r);

/*
 * The operations that make our folders those of the (normalised) list.
 * status: one for each listed folder, looked at for unknown ones only.  A
 * folder that is not listed is missing at the first look and gone at the
 * second, in a later pass.
 */
void folders_diff(struct arena *arena, const struct conf *conf,
    const struct folder *local, size_t n_local,
    const struct imap_folder *listed, const struct imap_status *status,
    size_t n_listed, bool is_whole, struct folder_op **ops_r, size_t *n_r);

#endif
