/*
 * world.h - everything the mock knows: groups, accounts, counters.
 *
 * An account comes into being when somebody first names it, by LOGIN or on the
 * control port, if its name fits a group.  A group says what its accounts look
 * like: capabilities, how much mail they begin with, limits.
 */
#ifndef MOCKIMAPD_WORLD_H
#define MOCKIMAPD_WORLD_H

#include "base/banned.h"

#include <bsd/sys/queue.h>
#include <event2/event.h>

#include <stdbool.h>
#include <stdint.h>

/*
 * symbol, word in CAPABILITY (NULL: shown elsewhere).  A switched-off
 * capability is neither announced nor understood.
 */
#define CAPABILITIES(X)                      \
	X(CAP_SASL_IR, "SASL-IR")            \
	X(CAP_LITERAL_PLUS, "LITERAL+")      \
	X(CAP_ID, "ID")                      \
	X(CAP_ENABLE, "ENABLE")              \
	X(CAP_IDLE, "IDLE")                  \
	X(CAP_NAMESPACE, "NAMESPACE")        \
	X(CAP_CHILDREN, "CHILDREN")          \
	X(CAP_UNSELECT, "UNSELECT")          \
	X(CAP_UIDPLUS, "UIDPLUS")            \
	X(CAP_MOVE, "MOVE")                  \
	X(CAP_SPECIAL_USE, "SPECIAL-USE")    \
	X(CAP_LIST_EXTENDED, "LIST-EXTENDED")\
	X(CAP_LIST_STATUS, "LIST-STATUS")    \
	X(CAP_CONDSTORE, "CONDSTORE")        \
	X(CAP_QRESYNC, "QRESYNC")

enum capability {
#define X(symbol, word) symbol,
	CAPABILITIES(X)
#undef X
	    CAP_COUNT
};
#define CAP_BIT(cap) (1U << (cap))
#define CAPS_FULL ((1U << CAP_COUNT) - 1)
#define CAPS_CONDSTORE (CAPS_FULL & ~CAP_BIT(CAP_QRESYNC))
#define CAPS_PLAIN 0U
extern const char *const capability_names[CAP_COUNT];
/* "full", "condstore", "plain", or one word of the list. */
bool capability_parse(const char *word, unsigned *caps_r);

/* What accounts of a group get and may. */
struct group {
	STAILQ_ENTRY(group) entry;
	char name[32];
	char match[128]; /* fnmatch(3) of the login */
	char password[64];
	unsigned caps;
	/* mail at birth, and the shape of what is delivered later */
	uint32_t inbox, other; /* messages in INBOX, in each other folder */
	uint32_t folders;      /* further folders: "Folder 1" ... */
	uint32_t size, big_size;
	double big_share; /* 0..1 */
	unsigned max_connections; /* an account; 0: any number */
	char limit_text[160];
};

struct counters {
	unsigned connections, connections_peak;
	unsigned idle, idle_peak;
	uint64_t accepted; /* totals only */
	uint64_t logins, refused, commands;
	uint64_t delivered, bodies, bytes_out;
	uint64_t faults;
};

LIST_HEAD(session_list, session);

struct account {
	struct world *world;
	struct group *group;
	char *login;
	char *password; /* NULL: that of the group */
	struct folder **folders;
	size_t n_folders, cap_folders;
	uint32_t last_uidvalidity;
	struct counters counters;
	struct session_list sessions;
};

struct world {
	struct event_base *base;
	uint64_t seed;
	STAILQ_HEAD(, group) groups; /* the last that matches wins */
	struct account **accounts;   /* in the order they came */
	size_t n_accounts, cap_accounts;
	struct account **table; /* by hash of the login */
	size_t table_size;
	struct counters totals;
	struct session_list sessions, dead; /* dead: freed with the turn */
	struct event *reaper;
	struct arena *arena; /* dies with each command */
	unsigned max_connections; /* in all; 0: any number */
	uint32_t last_conn;
	struct record *record;
	struct faults *faults;
	struct traffic *traffic;
	struct tls_server *tls; /* NULL: no TLS */
};

void world_init(struct world *world, uint64_t seed);
void world_release(struct world *world);
/* The group of that name; made with the presets when there is none. */
struct group *world_group(struct world *world, const char *name);
/* NULL when no group wants such a name. */
struct account *world_account(struct world *world, const char *login);
bool account_is_password(const struct account *account, const char *password);

#endif
