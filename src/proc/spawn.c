/*
 * spawn.c - the one place that forks.
 *
 * Runs in: master; the second half in the new child.  Does not block.
 *
 * Plain fork, no exec: what was loaded before (trust store, tables, settings)
 * is shared with all children.  The price is that a child inherits everything,
 * so the first thing it does is to let go of what is not its own.  Order
 * matters: signals stay blocked until the master's handlers are gone, and
 * descriptors are closed before anything opens new ones.
 *
 * A child guarantees its master: it does not outlive it (PDEATHSIG; end of
 * file on the channel as the second line), it holds no descriptor of it, it
 * can gain no privilege, and what it knows reaches no core file.  For
 * debugging, MAILHERD_CORES=1 in the master's environment lifts the last one.
 */
#include "config.h"

#include "proc/spawn.h"

#include "base/log.h"
#include "ipc/channel.h"
#include "proc/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <syslog.h>
#include <unistd.h>

static child_main mains[KIND_COUNT];

void
spawn_init(const child_main entry_points[KIND_COUNT])
{
	memcpy(mains, entry_points, sizeof(mains));
}

/* Everything but 0, 1, 2 and these two. */
static void
close_all_but(int a, int b)
{
	unsigned low = (unsigned)(a < b ? a : b);
	unsigned high = (unsigned)(a < b ? b : a);

	if (low > 3)
		close_range(3, low - 1, 0);
	if (high > low + 1 && high > 3)
		close_range(low < 3 ? 3 : low + 1, high - 1, 0);
	close_range(high < 3 ? 3 : high + 1, ~0U, 0);
}

static void
let_go_of_descriptors(int channel)
{
	int null;

	/*
	 * syslog remembers its socket by number; once that number is a mail
	 * server's, log lines would go there.  It opens a new one by itself.
	 */
	closelog();
	close_all_but(channel, log_fd());
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
static void
reset_signals(void)
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

/* _exit() and not exit(): atexit handlers are the master's. */
static _Noreturn void
fail(const char *what)
{
	log_error(NULL, "%s: %s", what, strerror(errno));
	_exit(EXIT_BUG);
}

static void
bind_to_master(pid_t master)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1)
		fail("PR_SET_PDEATHSIG");
	/* it may have died before */
	if (getppid() != master)
		_exit(EXIT_MASTER_GONE);
}

/* Address space reaches far beyond memory under these. */
static bool
is_memory_checked(void)
{
#ifdef MAILHERD_SANITIZED
	return true;
#else
	const char *preload = getenv("LD_PRELOAD");

	return preload != NULL && strstr(preload, "vgpreload") != NULL;
#endif
}

static uint64_t
address_space_now(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f != NULL) {
		if (fscanf(f, "%llu", &pages) != 1)
			pages = 0;
		fclose(f);
	}
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
limit_memory(uint64_t limit_bytes)
{
	struct rlimit limit;

	mallopt(M_TRIM_THRESHOLD, 65536);
	if (limit_bytes == 0 || is_memory_checked())
		return;
	limit.rlim_cur = limit.rlim_max = address_space_now() + limit_bytes;
	if (setrlimit(RLIMIT_AS, &limit) == -1)
		log_warn(NULL, "memory limit not set: %s", strerror(errno));
}

static void
prefer_for_oom(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd == -1)
		return;
	if (write(fd, "500", 3) == -1)
		log_debug(NULL, "oom_score_adj: %s", strerror(errno));
	close(fd);
}

static void
confine(void)
{
	static const struct rlimit none = { 0, 0 };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		fail("PR_SET_NO_NEW_PRIVS");
	/* LeakSanitizer traces itself */
	if (getenv("MAILHERD_CORES") != NULL || is_memory_checked())
		return;
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static _Noreturn void
become_child(const struct child_start *start, pid_t master,
    void (*on_child)(void), uint64_t memory_limit_bytes)
{
	bind_to_master(master);
	let_go_of_descriptors(start->channel);
	reset_signals();
	slots_enter_child();
	if (on_child != NULL)
		on_child();
	/* these two while /proc/self is still ours */
	prefer_for_oom();
	limit_memory(memory_limit_bytes);
	confine();
	proc_set_title("%s", child_kind_name(start->kind));
	mains[start->kind](start);
	log_error(NULL, "%s: main function returned",
	    child_kind_name(start->kind));
	_exit(EXIT_BUG);
}

int
spawn(struct child_start *start, void (*on_child)(void),
    uint64_t memory_limit_bytes, pid_t *pid_r, int *channel_r,
    struct err *err)
{
	pid_t master = getpid(), pid;
	sigset_t all, before;
	int fds[2], fork_errno;

	if (mains[start->kind] == NULL)
		die_bug("spawn before spawn_init");
	if (channel_pair(fds, err) == -1)
		return -1;
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) == -1)
		die_bug("O_NONBLOCK: %s", strerror(errno));
	start->channel = fds[1];
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		become_child(start, master, on_child, memory_limit_bytes);
	fork_errno = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(fds[1]);
	if (pid == -1) {
		close(fds[0]);
		return err_set(err, ERR_TEMPORARY, "no %s child: fork: %s",
		    child_kind_name(start->kind), strerror(fork_errno));
	}
	*pid_r = pid;
	*channel_r = fds[0];
	return 0;
}
