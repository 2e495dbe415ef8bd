/*
 * mailbox.h - folders and what is in them.
 *
 * Changes come from two sides, IMAP commands and the control port, and look the
 * same to whoever watches: each raises the folder's modseq.  Nothing here tells
 * the sessions; who made the changes calls session_announce() when done.
 */
#ifndef MOCKIMAPD_MAILBOX_H
#define MOCKIMAPD_MAILBOX_H

#include "mail.h"
#include "parse.h"
#include "world.h"

#define DELIMITER '/'
#define FOLDER_NAME_MAX 500

struct message {
	struct mail mail;
	uint32_t uid;
	uint32_t keywords; /* bit k: keyword k of the folder */
	uint32_t flags;	   /* FLAG_SEEN ... */
	uint64_t modseq;
	int64_t date; /* INTERNALDATE */
};

struct gone {
	uint32_t uid;
	uint64_t modseq;
};

struct folder {
	struct account *account;
	char *name; /* as on the wire; "INBOX" in capitals */
	const char *use; /* "\\Sent", or NULL */
	bool is_noselect;
	uint32_t uidvalidity, uidnext;
	uint64_t modseq;
	struct message *messages; /* by uid */
	size_t n, cap;
	struct gone *gone; /* by modseq; for QRESYNC */
	size_t n_gone, cap_gone;
	char *keywords[KEYWORDS_MAX];
	size_t n_keywords;
	struct session_list sessions;
};

/* Folders and mail an account of its group begins with. */
void mailbox_furnish(struct account *account);

struct folder *folder_find(const struct account *account, const char *name);
/* NULL when there is one or the name is not allowed. */
struct folder *folder_create(struct account *account, const char *name);
/* No session may have it selected. */
void folder_remove(struct folder *folder);
/* With those below it; false when a name is taken or not allowed. */
bool folder_rename(struct folder *folder, const char *name);
bool folder_has_children(const struct folder *folder);
/* New UIDVALIDITY, and UIDs from 1 in the old order.  As for remove. */
void folder_renumber(struct folder *folder);

struct message *folder_message(const struct folder *folder, uint32_t uid);
static inline uint32_t
folder_last_uid(const struct folder *folder)
{
	return folder->n > 0 ? folder->messages[folder->n - 1].uid : 0;
}

/* One generated message; `size` 0 is as the group says.  Returns the UID. */
uint32_t folder_deliver(struct folder *folder, uint32_t size, int64_t date);
/* One with bytes of its own; takes `raw`. */
uint32_t folder_append(struct folder *folder, struct raw *raw,
    const struct flag_list *flags, int64_t date);
uint32_t folder_copy(const struct folder *from, const struct message *message,
    struct folder *to);

enum flag_change { FLAGS_SET, FLAGS_ADD, FLAGS_REMOVE };
/* False: nothing was to change. */
bool folder_flag(struct folder *folder, struct message *message,
    enum flag_change change, const struct flag_list *flags);
/* Removes messages for which want() is true; the UIDs removed in `uids_r`,
 * to be freed, unless NULL. */
typedef bool (*folder_want)(const struct message *message, void *arg);
size_t folder_expunge(struct folder *folder, folder_want want, void *arg,
    uint32_t **uids_r);
/* A want() for `arg` a struct set of UIDs. */
bool folder_want_set(const struct message *message, void *arg);

/* Flags as on the wire, without parentheses. */
void folder_print_flags(const struct folder *folder,
    const struct message *message, struct buf *out);

#endif
