/*
 * changes.h - inside imap: libetpan's message data as ours.
 */
#ifndef IMAP_CHANGES_H
#define IMAP_CHANGES_H

#include "base/buf.h"
#include "imap/imap.h"

#include <libetpan/libetpan.h>

/* Buffers that hold the strings of a place. */
struct place_text {
	struct buf keywords, message_id;
};
void place_text_release(struct place_text *t);

/*
 * What one FETCH line says.  The strings live in `t` until its next use.
 * has_body_r (may be NULL): BODY[] was there and not NIL.  uid 0: not told.
 */
void place_read(struct place *place, struct place_text *t,
    struct mailimap_msg_att *att, bool *has_body_r);

/* Flag news of one FETCH line, copied into the arena of the changes. */
void changes_add_message(struct imap_changes *changes,
    struct mailimap_msg_att *att);
void changes_add_vanished(struct imap_changes *changes,
    const struct mailimap_set *set);
/* Sorts and makes unique; leaves out UIDs above `last`. */
void changes_finish(struct imap_changes *changes, uint32_t last);

#endif
