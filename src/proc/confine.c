/*
 * confine.c - what a fork of the master lets go of.
 *
 * Runs in: the template and the children it makes.  Does not block.
 *
 * A fork inherits everything, so the first thing it does is to let go of what
 * is not its own.  Order matters: signals stay blocked until the master's
 * handlers are gone, and descriptors are closed before anything opens new
 * ones.
 */
#include "config.h"

#include "proc/confine.h"

#include "base/heap.h"
#include "base/log.h"
#include "proc/kinds.h"
#include "proc/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* _exit() and not exit(): atexit handlers are the master's. */
static _Noreturn void
fail(const char *what)
{
	log_error(NULL, "%s: %s", what, strerror(errno));
	_exit(EXIT_BUG);
}

void
confine_bind(pid_t master)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1)
		fail("PR_SET_PDEATHSIG");
	/* it may have died before */
	if (getppid() != master)
		_exit(EXIT_MASTER_GONE);
}

static int
by_number(const void *va, const void *vb)
{
	const int *a = va, *b = vb;

	return *a < *b ? -1 : *a > *b;
}

/* Everything but 0, 1, 2 and these, in order. */
static void
close_all_but(const int *keep, size_t n)
{
	unsigned from = STDERR_FILENO + 1;
	size_t i;

	for (i = 0; i < n; i++) {
		if (keep[i] < (int)from)
			continue;
		if ((unsigned)keep[i] > from)
			close_range(from, (unsigned)keep[i] - 1, 0);
		from = (unsigned)keep[i] + 1;
	}
	close_range(from, ~0U, 0);
}

void
confine_descriptors(int a, int b)
{
	int keep[3] = { a, b, log_fd() };
	int null;

	qsort(keep, 3, sizeof(keep[0]), by_number);
	close_all_but(keep, 3);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null == -1)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (null > STDERR_FILENO)
		close(null);
}

/*
 * Handlers are the master's; a sanitizer's for crashes are kept.  What an
 * operator sends to the whole family (reload, Ctrl-C) is for the master alone.
 */
void
confine_signals(void)
{
	static const int ignored[] = { SIGHUP, SIGINT, SIGUSR1, SIGUSR2,
		SIGPIPE };
	sigset_t none;
	size_t i;
	int sig;

	for (sig = 1; sig < NSIG; sig++)
		if (sig != SIGSEGV && sig != SIGBUS && sig != SIGFPE &&
		    sig != SIGILL && sig != SIGABRT)
			signal(sig, SIG_DFL);
	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * The file belongs to root once we are not dumpable, but who has it open may
 * go on writing.  What was there before may be written by anybody again.
 */
static struct {
	int fd;
	char usual[16];
} oom = { .fd = -1 };

static void
open_oom(void)
{
	ssize_t n;

	if (oom.fd != -1)
		return;
	oom.fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	if (oom.fd == -1)
		return;
	n = pread(oom.fd, oom.usual, sizeof(oom.usual) - 1, 0);
	oom.usual[n > 0 ? n : 0] = '\0';
}

void
confine_prefer_for_oom(bool is_preferred)
{
	const char *value;

	open_oom();
	value = is_preferred ? "500" : oom.usual;
	if (oom.fd != -1 && pwrite(oom.fd, value, strlen(value), 0) == -1)
		log_debug(NULL, "oom_score_adj: %s", strerror(errno));
}

void
proc_hide_memory(void)
{
	static const struct rlimit none = { 0, 0 };

	open_oom();
	/* LeakSanitizer traces itself */
	if (getenv("MAILHERD_CORES") != NULL || heap_is_checked())
		return;
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

void
confine_process(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		fail("PR_SET_NO_NEW_PRIVS");
	proc_hide_memory();
}

/* Without stdio: its buffer would be the child's first dirty page. */
static uint64_t
address_space_now(void)
{
	char text[64];
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd == -1)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void
confine_memory(uint64_t limit_bytes)
{
	struct rlimit limit;

	if (limit_bytes == 0 || heap_is_checked())
		return;
	limit.rlim_cur = limit.rlim_max = address_space_now() + limit_bytes;
	if (setrlimit(RLIMIT_AS, &limit) == -1)
		log_warn(NULL, "memory limit not set: %s", strerror(errno));
}
