/*
 * session.h - inside remote: one connection with its state.
 */
#ifndef REMOTE_SESSION_H
#define REMOTE_SESSION_H

#include "conf/quirks.h"
#include "remote/remote.h"
#include "remote/wire.h"

#include <libetpan/libetpan.h>

#define STREAM_BUFFER 4096 /* libetpan's, for each direction */
#define COMMAND_MAX_BYTES 8000 /* Exchange takes 10,240 (L223) */

struct remote {
	mailimap *imap;
	struct wire *wire;
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
	unsigned caps; /* enum remote_cap, after quirks */
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
	bool is_list_cut;     /* remote_list_is_cut */
	unsigned idle_early_ends; /* in a row */
	int64_t idle_debt_msecs, idle_mono_msecs; /* pace of IDLE, idle.c */
	unsigned n_busy; /* refusals in a row that ask to wait */
	bool is_exists_known; /* false after VANISHED: any EXISTS is news */
	bool is_disturbed;    /* remote_is_disturbed */
	uint32_t exists_told; /* by the last reply */

	/* Of the command whose reply is being read; NULL: not wanted. */
	void (*on_message)(struct remote *r, struct mailimap_msg_att *att,
	    void *arg);
	void *on_message_arg;
	struct remote_changes *changes;
};

/* Always -1.  The session is over; later calls fail the same way. */
int session_die(struct remote *r, const struct err *why, struct err *err);
/* 0, or -1 when the session is over or the caller must not go on. */
int session_check(struct remote *r, struct err *err);
/* Capability word, without case. */
bool session_has(struct remote *r, const char *capability);
/* CAPABILITY, when it has not come by itself. */
int session_ask_capability(struct remote *r, struct err *err);
void session_forget_capabilities(struct remote *r);
/* Takes capabilities and quirks in; after greeting, STARTTLS and login. */
void session_note_capabilities(struct remote *r, const char *greeting);

/* Closes the connection without a word; another may be begun. */
void session_drop(struct remote *r);

/* login.c */
int login_run(struct remote *r, const char *login, const char *password,
    struct err *err);

#endif
