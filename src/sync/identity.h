/*
 * identity.h - is it still the same message under the same UID?  Private to
 * sync.
 */
#ifndef SYNC_IDENTITY_H
#define SYNC_IDENTITY_H

#include "sync/windows.h"

/* What a comparison that tells messages apart asks for. */
#define ITEMS_IDENTITY (ITEM_FLAGS | ITEM_SIZE | ITEM_DATE)

/* What the server shows (sorted) against the rows of the same UIDs; those of
 * other messages are added to the replaced.  The folder is selected. */
int identity_check(struct session *s, struct folder *folder,
    const struct place *shown, size_t n, struct findings *f,
    struct err *err);

#endif
