/*
 * log.c - one line per event.
 *
 * Runs in: every process.  A line is one write(2) of at most 4 KB, so that
 * lines of many children on one descriptor do not mix.
 */
#include "base/log.h"

#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <syslog.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096

static const struct {
	const char *name;
	int syslog_priority;
} levels[] = {
	[LOG_LEVEL_ERROR] = { "error", LOG_ERR },
	[LOG_LEVEL_WARN] = { "warn", LOG_WARNING },
	[LOG_LEVEL_INFO] = { "info", LOG_INFO },
	[LOG_LEVEL_DEBUG] = { "debug", 7 /* syslog's LOG_DEBUG */ },
};

static const char *const subsystem_names[LOG_SUBSYSTEM_COUNT] = {
#define X(symbol, name) [symbol] = name,
	LOG_SUBSYSTEMS(X)
#undef X
};

static struct {
	const char *program;
	enum log_target target;
	enum log_level level;
	bool debug[LOG_SUBSYSTEM_COUNT];
	char process[160];
	char file[512];
	int fd;
} state = { "mailherd", LOG_TARGET_STDERR, LOG_LEVEL_INFO, { false }, "", "",
	STDERR_FILENO };

static void
open_syslog(void)
{
	openlog(state.program, LOG_PID | LOG_NDELAY, LOG_MAIL);
}

void
log_open(const char *program, enum log_target target)
{
	state.program = program;
	state.target = target;
	if (target == LOG_TARGET_SYSLOG)
		open_syslog();
}

int
log_set_file(const char *path)
{
	int fd = STDERR_FILENO;

	if (path != NULL && path[0] != '\0') {
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
		    0640);
		if (fd == -1)
			return -1;
	}
	if (state.fd != STDERR_FILENO)
		close(state.fd);
	state.fd = fd;
	snprintf(state.file, sizeof(state.file), "%s", path ? path : "");
	return 0;
}

void
log_reopen(void)
{
	char path[sizeof(state.file)];

	if (state.target == LOG_TARGET_SYSLOG) {
		closelog();
		open_syslog();
	} else if (state.file[0] != '\0') {
		snprintf(path, sizeof(path), "%s", state.file);
		if (log_set_file(path) == -1)
			log_warn(NULL, "log file %s not reopened: %s", path,
			    strerror(errno));
	}
}

int
log_fd(void)
{
	return state.fd;
}

void
log_set_level(enum log_level level)
{
	state.level = level;
}

enum log_level
log_get_level(void)
{
	return state.level;
}

void
log_set_debug(enum log_subsystem subsystem, bool on)
{
	state.debug[subsystem] = on;
}

int
log_level_parse(const char *name, enum log_level *level_r)
{
	size_t i;

	for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strcmp(levels[i].name, name) == 0) {
			*level_r = (enum log_level)i;
			return 0;
		}
	return -1;
}

int
log_subsystem_parse(const char *name, enum log_subsystem *subsystem_r)
{
	size_t i;

	for (i = 0; i < LOG_SUBSYSTEM_COUNT; i++)
		if (strcmp(subsystem_names[i], name) == 0) {
			*subsystem_r = (enum log_subsystem)i;
			return 0;
		}
	return -1;
}

void
log_set_process(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(state.process, sizeof(state.process), fmt, ap);
	va_end(ap);
}

void
log_init(struct log *log, enum log_subsystem subsystem, const char *fmt, ...)
{
	va_list ap;

	log->subsystem = subsystem;
	va_start(ap, fmt);
	vsnprintf(log->fields, sizeof(log->fields), fmt, ap);
	va_end(ap);
}

static bool
is_wanted(const struct log *log, enum log_level level)
{
	if (level <= state.level)
		return true;
	return level == LOG_LEVEL_DEBUG &&
	    state.debug[log != NULL ? log->subsystem : LOG_CORE];
}

bool
log_is_debug(const struct log *log)
{
	return is_wanted(log, LOG_LEVEL_DEBUG);
}

static const char *
format_now(char *out, size_t size)
{
	int64_t now = clock_wall_msecs();
	time_t secs = (time_t)(now / 1000);
	struct tm tm;
	size_t used;

	gmtime_r(&secs, &tm);
	used = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + used, size - used, ".%03dZ", (int)(now % 1000));
	return out;
}

static void
write_line(char *line, size_t len)
{
	ssize_t n;

	do
		n = write(state.fd, line, len);
	while (n == -1 && errno == EINTR);
}

static void
emit(const struct log *log, enum log_level level, const char *fmt, va_list ap)
{
	char message[LINE_MAX_BYTES - 600], clean[LINE_MAX_BYTES - 600];
	char line[LINE_MAX_BYTES], now[40];
	const char *fields = log != NULL ? log->fields : "";
	int len, saved_errno = errno;

	if (!is_wanted(log, level))
		return;
	vsnprintf(message, sizeof(message), fmt, ap);
	text_clean_line(clean, sizeof(clean), message, strlen(message));
	if (state.target == LOG_TARGET_SYSLOG) {
		syslog(levels[level].syslog_priority, "%s%s%s%s%s",
		    state.process, state.process[0] ? " " : "", fields,
		    fields[0] ? ": " : "", clean);
		errno = saved_errno;
		return;
	}
	/* The journal reads the priority from "<n>" and adds the time. */
	if (state.target == LOG_TARGET_JOURNAL)
		snprintf(now, sizeof(now), "<%d>",
		    levels[level].syslog_priority);
	else
		format_now(now, sizeof(now));
	len = snprintf(line, sizeof(line), "%s%s%s[%d]: %s: %s%s%s%s%s\n", now,
	    state.target == LOG_TARGET_JOURNAL ? "" : " ", state.program,
	    (int)getpid(), levels[level].name, state.process,
	    state.process[0] ? " " : "", fields, fields[0] ? ": " : "", clean);
	if (len >= (int)sizeof(line)) {
		len = sizeof(line) - 1;
		line[len - 1] = '\n';
	}
	write_line(line, (size_t)len);
	errno = saved_errno;
}

#define EMIT(log, level, fmt)                     \
	do {                                      \
		va_list ap;                       \
		va_start(ap, fmt);                \
		emit((log), (level), (fmt), ap);  \
		va_end(ap);                       \
	} while (0)

void
log_error(const struct log *log, const char *fmt, ...)
{
	EMIT(log, LOG_LEVEL_ERROR, fmt);
}

void
log_warn(const struct log *log, const char *fmt, ...)
{
	EMIT(log, LOG_LEVEL_WARN, fmt);
}

void
log_info(const struct log *log, const char *fmt, ...)
{
	EMIT(log, LOG_LEVEL_INFO, fmt);
}

void
log_debug(const struct log *log, const char *fmt, ...)
{
	EMIT(log, LOG_LEVEL_DEBUG, fmt);
}

void
die(int exit_code, const char *fmt, ...)
{
	EMIT(NULL, LOG_LEVEL_ERROR, fmt);
	exit(exit_code);
}

void
die_bug(const char *fmt, ...)
{
	EMIT(NULL, LOG_LEVEL_ERROR, fmt);
	abort();
}
