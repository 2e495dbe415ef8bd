/*
 * session.h - inside imap: one connection with its state.
 */
#ifndef IMAP_SESSION_H
#define IMAP_SESSION_H

#include "conf/quirks.h"
#include "imap/imap.h"
#include "imap/stream.h"

#include <libetpan/libetpan.h>

#define STREAM_BUFFER 4096 /* libetpan's, for each direction */
#define COMMAND_MAX_BYTES 8000 /* Exchange takes 10,240 (L223) */

struct imap {
	mailimap *imap;
	struct stream *stream;
	char host[256];
	uint16_t port;
	const struct log *log;
	int64_t command_msecs, select_msecs;
	uint64_t max_literal, max_reply;
	int64_t body_msecs; /* 0: command_msecs */
	int (*may_go_on)(void *arg, struct err *err);
	void (*gave_socket)(void *arg);
	void *arg;

	struct quirks quirks;
	unsigned caps; /* enum imap_cap, after quirks */
	bool is_logged_in;
	struct err dead; /* kind ERR_NONE: alive */

	int last_tag;
	int id_tag;	/* ID was sent, its answer not read yet; 0: none */
	int id_later;	/* tag for an ID that goes with the next command */
	int unselect_tag, enable_tag; /* as id_tag */
	enum { ENABLE_UNTRIED, ENABLE_SENT, ENABLE_OFF } enable;
	bool is_qresync_on;

	bool is_select_plain; /* its parameters are BAD */
	bool has_retried_id;
	bool is_status_plain; /* HIGHESTMODSEQ there is BAD */
	bool is_selected;
	unsigned n_size_lies; /* messages whose RFC822.SIZE is proven wrong */
	bool is_slowed;	      /* "OK [THROTTLED]" */
	bool is_list_cut;     /* imap_list_is_cut */
	unsigned idle_early_ends; /* in a row */
	int64_t idle_debt_msecs, idle_mono_msecs; /* pace of IDLE, idle.c */
	unsigned n_busy; /* refusals in a row that ask to wait */
	bool is_exists_known; /* false after VANISHED: any EXISTS is news */
	bool is_disturbed;    /* imap_is_disturbed */
	uint32_t exists_told; /* by the last reply */

	/* Of the command whose reply is being read; NULL: not wanted. */
	void (*on_message)(struct imap *r, struct mailimap_msg_att *att,
	    void *arg);
	void *on_message_arg;
	struct imap_changes *changes;
};

/* Always -1.  The session is over; later calls fail the same way. */
int imap_die(struct imap *r, const struct err *why, struct err *err);
/* 0, or -1 when the session is over or the caller must not go on. */
int imap_check(struct imap *r, struct err *err);
/* Capability word, without case. */
bool imap_has(struct imap *r, const char *capability);
/* CAPABILITY, when it has not come by itself. */
int imap_ask_capability(struct imap *r, struct err *err);
void imap_forget_capabilities(struct imap *r);
/* Takes capabilities and quirks in; after greeting, STARTTLS and login. */
void imap_note_capabilities(struct imap *r, const char *greeting);

/* Closes the connection without a word; another may be begun. */
void imap_drop(struct imap *r);

/* login.c */
int login_run(struct imap *r, const char *login, const char *password,
    struct err *err);

#endif
