/*
 * log.c - one line per event.
 *
 * Runs in: every process.  A line is one write(2) of at most 4 KB, so that
 * lines of many children on one descriptor do not mix.  A line for which there
 * is no room (sink.c) is lost; the next one that is not says how many were.
 */
#include "base/log.h"

#include "base/clock.h"
#include "base/sink.h"
#include "base/text.h"

#include <errno.h>
#include <paths.h>
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
	uint64_t n_lost, n_unsaid;
	bool is_watched;
} state = { .program = "mailherd", .target = LOG_TARGET_STDERR,
	.level = LOG_LEVEL_INFO };

void
log_open(const char *program, enum log_target target)
{
	state.program = program;
	state.target = target;
	if (target == LOG_TARGET_SYSLOG)
		sink_set_syslog(_PATH_LOG);
}

void
log_never_wait(void)
{
	sink_never_wait();
}

int
log_set_file(const char *path)
{
	return sink_set_file(path);
}

int
log_reopen(void)
{
	if (sink_reopen() == 0)
		return 0;
	log_warn(NULL, "the log was not opened again, it goes on as it was: "
	    "%s", strerror(errno));
	return -1;
}

int
log_fd(void)
{
	return sink_fd();
}

uint64_t
log_lost(void)
{
	return state.n_lost;
}

void
log_also_stderr(bool on)
{
	state.is_watched = on;
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
log_is_wanted(const struct log *log, enum log_level level)
{
	if (level <= state.level)
		return true;
	return level == LOG_LEVEL_DEBUG &&
	    state.debug[log != NULL ? log->subsystem : LOG_CORE];
}

bool
log_is_debug(const struct log *log)
{
	return log_is_wanted(log, LOG_LEVEL_DEBUG);
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

/* "<22>Mar  3 09:00:00", as syslogd has known it for ever. */
static const char *
format_syslog(char *out, size_t size, enum log_level level)
{
	time_t now = (time_t)clock_wall_secs();
	struct tm tm;
	size_t used;

	localtime_r(&now, &tm);
	used = (size_t)snprintf(out, size, "<%d>",
	    LOG_MAIL | levels[level].syslog_priority);
	strftime(out + used, size - used, "%b %e %T", &tm);
	return out;
}

/* What stands before the text; syslog and the journal know the level by "<n>",
 * and the journal adds the time. */
static int
format_head(char *out, size_t size, enum log_level level, const char *fields)
{
	char begin[60], name[12] = "";

	switch (state.target) {
	case LOG_TARGET_SYSLOG:
		format_syslog(begin, sizeof(begin), level);
		break;
	case LOG_TARGET_JOURNAL:
		snprintf(begin, sizeof(begin), "<%d>",
		    levels[level].syslog_priority);
		break;
	default:
		format_now(begin, sizeof(begin));
	}
	if (state.target != LOG_TARGET_SYSLOG)
		snprintf(name, sizeof(name), "%s: ", levels[level].name);
	return snprintf(out, size, "%s%s%s[%d]: %s%s%s%s%s", begin,
	    state.target == LOG_TARGET_JOURNAL ? "" : " ", state.program,
	    (int)getpid(), name, state.process, state.process[0] ? " " : "",
	    fields, fields[0] ? ": " : "");
}

static int
emit_line(enum log_level level, const char *fields, const char *text)
{
	char line[LINE_MAX_BYTES];
	int len = format_head(line, sizeof(line) - 1, level, fields);

	len += snprintf(line + len, sizeof(line) - 1 - (size_t)len, "%s",
	    text);
	if (len > (int)sizeof(line) - 2)
		len = sizeof(line) - 2;
	if (state.target != LOG_TARGET_SYSLOG)
		line[len++] = '\n';
	line[len] = '\0';
	return sink_write(line, (size_t)len);
}

/* There is room again, it seems. */
static void
emit_loss(void)
{
	char text[100];

	snprintf(text, sizeof(text), "%llu lines of this process were lost "
	    "here: nobody read the log, or it is full",
	    (unsigned long long)state.n_unsaid);
	if (emit_line(LOG_LEVEL_WARN, "", text) == 0)
		state.n_unsaid = 0;
}

static void
log_emit(
    const struct log *log, enum log_level level, const char *fmt, va_list ap)
{
	char message[LINE_MAX_BYTES - 600], clean[LINE_MAX_BYTES - 600];
	int saved_errno = errno;

	if (!log_is_wanted(log, level))
		return;
	vsnprintf(message, sizeof(message), fmt, ap);
	text_clean_line(clean, sizeof(clean), message, strlen(message));
	if (state.is_watched && level <= LOG_LEVEL_WARN)
		fprintf(stderr, "%s: %s: %s\n", state.program,
		    levels[level].name, clean);
	if (state.n_unsaid > 0)
		emit_loss();
	/* In the order they were said: none overtakes the word of a loss. */
	if (state.n_unsaid > 0 ||
	    emit_line(level, log != NULL ? log->fields : "", clean) == -1) {
		state.n_lost++;
		state.n_unsaid++;
	}
	errno = saved_errno;
}

#define EMIT(log, level, fmt)                                                  \
	do {                                                                   \
		va_list ap;                                                    \
		va_start(ap, fmt);                                             \
		log_emit((log), (level), (fmt), ap);                           \
		va_end(ap);                                                    \
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
