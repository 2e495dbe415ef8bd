/*
 * log.h - one line per event, key=value, to stderr, syslog or the journal.
 *
 * An object that is logged about embeds a struct log and fills it once with
 * its own fields ("account_id=... tier=hot"); each line then carries them.
 * Never log a secret; subjects and addresses only at debug.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/banned.h"

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG };

/* Debug lines can be switched on by subsystem: symbol, name. */
#define LOG_SUBSYSTEMS(X)                                                  \
	X(LOG_CORE, "core")                                                \
	X(LOG_LEASE, "lease")                                              \
	X(LOG_STORE, "store")                                              \
	X(LOG_IMAP, "imap")                                            \
	X(LOG_MIME, "mime")                                                \
	X(LOG_SYNC, "sync")                                                \
	X(LOG_JOBS, "jobs")                                                \
	X(LOG_PROC, "proc")

enum log_subsystem {
#define X(symbol, name) symbol,
	LOG_SUBSYSTEMS(X)
#undef X
	    LOG_SUBSYSTEM_COUNT
};

enum log_target { LOG_TARGET_STDERR, LOG_TARGET_SYSLOG, LOG_TARGET_JOURNAL };

struct log {
	enum log_subsystem subsystem;
	char fields[240]; /* "key=value key=value ", may be empty */
};

/* Before the first line; `program` must be static. */
void log_open(const char *program, enum log_target target);
/*
 * SIGUSR1: reopens the target.  With stderr that is a file of the caller's
 * choosing: log_set_file() names it.  -1: not opened, which was logged.
 */
int log_reopen(void);
/* A daemon, early in its start: from now on no line waits for who reads the
 * log (base/sink.h); a tool rather waits than to lose one. */
void log_never_wait(void);
/* Lines of this process that were lost. */
uint64_t log_lost(void);
/* stderr target only: append to this file instead; NULL = standard error. */
int log_set_file(const char *path);
/* Descriptor a child must keep open. */
int log_fd(void);
/* Errors and warnings also go to standard error, whatever the target: while a
 * person waits there for the daemon to be ready. */
void log_also_stderr(bool on);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
/* Debug for one subsystem whatever the level. */
void log_set_debug(enum log_subsystem subsystem, bool on);
int log_level_parse(const char *name, enum log_level *level_r);
int log_subsystem_parse(const char *name, enum log_subsystem *subsystem_r);
/* Fields that every line of this process carries ("worker_id=..."). */
void log_set_process(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

void log_init(struct log *log, enum log_subsystem subsystem, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));

bool log_is_debug(const struct log *log);

/* `log` may be NULL: no object, subsystem core. */
void log_error(const struct log *log, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_warn(const struct log *log, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_info(const struct log *log, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_debug(const struct log *log, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A broken environment: logs and exits with the sysexits code. */
_Noreturn void die(int exit_code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A broken us: logs, then abort(). */
_Noreturn void die_bug(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

#endif
