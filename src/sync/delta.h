/*
 * delta.h - what has changed in a folder since the last look.  Private to sync.
 *
 * The folder is selected, look->folder is its copy, look->action says how it is
 * found out.
 */
#ifndef SYNC_DELTA_H
#define SYNC_DELTA_H

#include "sync/look.h"
#include "sync/windows.h"

/* With what the server tells (`changes` came with SELECT). */
int delta_from_server(struct session *s, struct look *look,
    struct imap_changes *changes, struct findings *f, struct err *err);
/* The server tells nothing: its messages against ours. */
int delta_by_comparison(struct session *s, struct look *look,
    struct findings *f, struct err *err);
/* Before they are deleted: the vanished ones are asked for by their UIDs.  What
 * the server still shows is there, whatever it said or counted before. */
int delta_confirm(struct session *s, struct look *look, struct findings *f,
    struct err *err);

#endif
