/*
 * windows.h - a folder compared with its server in bounded memory.
 *
 * Private to sync.
 */
#ifndef SYNC_WINDOWS_H
#define SYNC_WINDOWS_H

#include "sync/state.h"

/* What is different; everything lives in session->pass.  Sorted. */
struct findings {
	struct place *changed; /* known, other flags */
	size_t n_changed, cap_changed;
	struct place *fresh; /* not stored */
	size_t n_fresh, cap_fresh;
	uint32_t *vanished; /* stored, not on the server */
	size_t n_vanished, cap_vanished;
	uint32_t *replaced; /* among the fresh: another message is stored */
	size_t n_replaced, cap_replaced;
	uint32_t flag_scan_uid; /* where the rolling comparison goes on */
	/* The server has shown all that it says it has, this one last. */
	bool is_whole;
	uint32_t highest;
};

void findings_add_changed(struct session *s, struct findings *f,
    const struct place *p);
void findings_add_fresh(struct session *s, struct findings *f,
    const struct place *p);
void findings_add_vanished(struct session *s, struct findings *f,
    uint32_t uid);
/* Under this UID there is another message than the one stored. */
void findings_add_replaced(struct session *s, struct findings *f,
    const struct place *p);
void findings_sort(struct findings *f);

/*
 * Every message from the cursor's backfill_below up.  The folder is selected
 * and has `exists` messages; both may be looked at anew when messages go
 * while we count (*selected_r).  Vanished UIDs are reported only when the
 * server showed as many messages as it says it has (fact 23).  tell_apart:
 * messages are compared, too, not only their flags (identity.h).
 */
int windows_compare_all(struct session *s, struct folder *folder,
    struct imap_selected *selected_r, bool tell_apart,
    struct findings *findings_r, struct err *err);

/* The newest messages, and one window of the older ones, a different one each
 * time. */
int windows_compare_some(struct session *s, struct folder *folder,
    const struct imap_selected *selected, struct findings *findings_r,
    struct err *err);

/* The next slice of the folder's messages, compared with what tells them
 * apart. */
int windows_compare_slice(struct session *s, struct folder *folder,
    struct findings *f, struct err *err);

/* More messages than are compared at every look without CONDSTORE. */
#define WINDOW_NEWEST 2000

#endif
