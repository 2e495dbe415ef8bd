/*
 * session.h - one IMAP connection.
 *
 * What it says is gathered in `out` and leaves at the end of each step.  A
 * FETCH that is too long for one step goes on when the client has read.
 */
#ifndef MOCKIMAPD_SESSION_H
#define MOCKIMAPD_SESSION_H

#include "base/arena.h"
#include "fault.h"
#include "mailbox.h"
#include "parse.h"
#include "record.h"
#include "world.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>

enum session_state {
	STATE_GREETED = 1, /* bits, as in the table of commands */
	STATE_LOGGED_IN = 2,
	STATE_SELECTED = 4,
};

struct fetch;
struct transport;

struct session {
	LIST_ENTRY(session) entry;	   /* world->sessions */
	LIST_ENTRY(session) account_entry; /* account->sessions */
	LIST_ENTRY(session) folder_entry;  /* folder->sessions */
	struct world *world;
	struct account *account; /* once logged in */
	struct folder *folder;	 /* selected */
	enum session_state state;
	uint32_t conn;
	int64_t since_usecs;
	uint16_t peer_port;

	struct transport *transport;
	struct evbuffer *in; /* what came, decrypted; the transport's */
	struct buf out;
	struct event *timer; /* end of a stall */
	bool is_stalled, has_greeted;
	bool is_ending; /* closes once all is sent */
	bool is_closed; /* to be freed at the end of the turn */

	/* the command being read or done */
	struct buf line;
	size_t literal_left; /* bytes of it still to come */
	char tag[64];
	bool is_uid;	    /* "UID" came before the word */
	char name[32];	    /* "UID FETCH", for log and faults */
	bool is_faulted;    /* its faults have struck */
	bool is_auth;	    /* AUTHENTICATE waits for its line */
	struct fetch *fetch;

	/* what the client was told of the folder */
	bool is_read_only, has_condstore, has_qresync;
	bool is_idle, is_silent;
	uint32_t *view; /* UIDs by sequence number */
	size_t n_view, cap_view;
	uint64_t told_modseq;
};

bool session_has(const struct session *s, enum capability cap);

/* --- saying: out of the step's buffer ------------------------------------ */
void session_say(struct session *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The tagged answer; "OK ..." etc. */
void session_answer(struct session *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
#define session_bad(s) session_answer(s, "BAD Not understood")

/* --- life ---------------------------------------------------------------- */
void session_open(struct world *world, int fd, uint16_t peer_port,
    bool is_tls);
/* Takes effect at the end of the turn; `why` for the log. */
void session_close(struct session *s, const char *why);
/* "* BYE text", then closes. */
void session_bye(struct session *s, const char *text);
void session_flush(struct session *s);
/* Goes on with commands that have come in. */
void session_work(struct session *s);
/* Frees the closed ones; the reaper event of the world does. */
void session_reap(struct world *world);
void session_login(struct session *s, struct account *account);

/* --- the selected folder: view.c ----------------------------------------- */
void session_select(struct session *s, struct folder *folder,
    bool is_read_only);
void session_unselect(struct session *s);
/* Untagged news since the last time. */
void session_report(struct session *s);
/* After a change: tells those in IDLE. */
void session_announce(struct folder *folder);
/* BYE to all that have it selected, before it goes. */
void session_evict(struct folder *folder, const char *why);
void session_idle(struct session *s, bool on);
/* "* n FETCH (UID u FLAGS (...) MODSEQ (m))" */
void session_say_flags(struct session *s, const struct message *message,
    bool with_uid);
/* "* VANISHED set"; `word` is "" or " (EARLIER)". */
void session_say_vanished(struct session *s, const char *word,
    const uint32_t *uids, size_t n);
/* Those gone since that modseq, of the `known` ones (resolved; n 0: all). */
void session_say_vanished_since(struct session *s, uint64_t modseq,
    const struct set *known);
/* First place in the view, from 0, with a UID not below `uid`. */
size_t session_find(const struct session *s, uint32_t uid);
/* Sequence number of a UID in the view, 0 if it has none. */
uint32_t session_seq(const struct session *s, uint32_t uid);
/* The highest modseq of a folder, or the lie told of it; 0: NOMODSEQ. */
/* A number, or what a fault of this kind says instead. */
uint64_t session_lie(const struct session *s, enum fault_kind kind,
    uint64_t truth);
uint64_t session_modseq(const struct session *s, uint64_t modseq);

/* --- commands: commands.c and its families ------------------------------- */
/* Does the command in `line`, which is whole. */
void command_run(struct session *s);
/* What follows "AUTHENTICATE PLAIN". */
void command_auth_line(struct session *s, const char *line, size_t len);
/* Lets a fault strike; false: the command is not to be done (now). */
bool command_fault(struct session *s, const struct fault *fault);
/* Words of CAPABILITY here and now; valid until the next call. */
const char *command_capabilities(const struct session *s);
void fetch_go_on(struct session *s);
void fetch_free(struct fetch **fetch);

#define COMMAND(name) void name(struct session *s, struct parse *in)
COMMAND(command_list);
COMMAND(command_lsub);
COMMAND(command_status);
COMMAND(command_select);
COMMAND(command_examine);
COMMAND(command_unselect);
COMMAND(command_close);
COMMAND(command_create);
COMMAND(command_delete);
COMMAND(command_rename);
COMMAND(command_subscribe);
COMMAND(command_append);
COMMAND(command_fetch);
COMMAND(command_store);
COMMAND(command_copy);
COMMAND(command_move);
COMMAND(command_expunge);
COMMAND(command_search);

/* UIDs of the folder that the client's set means, in order; from the arena. */
struct uids {
	uint32_t *items;
	size_t n;
};
struct uids session_resolve(const struct session *s, struct set *set,
    struct arena *arena);

#endif
