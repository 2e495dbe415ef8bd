/*
 * spawn.c - the one place that forks.
 *
 * Runs in: master, template, and the beginning of a child.  Never blocks in
 * the master: it asks, and hears the answer when there is one.
 *
 * Plain fork, no exec: what was loaded before (trust store, tables, settings)
 * is shared with all children, until somebody writes to it.  The master writes
 * all the time, and each page it writes to would leave every child with an old
 * copy of its own.  So children are not copies of the master but of a copy of
 * it that never changes, the template: all it does is fork.
 *
 *	master --request, channel--> template --fork--> helper --fork--> child
 *	   ^----------------- generation, pid -------------'
 *
 * The helper ends at once, which makes the child an orphan; the master, being
 * its nearest subreaper, is its parent from then on.  Two real forks, and not
 * clone(CLONE_PARENT), because libraries must see them: a random generator
 * that does not know it was forked repeats itself.
 *
 * A child guarantees its master: it does not outlive it (PDEATHSIG; end of
 * file on the channel as the second line), it holds no descriptor of it, it
 * can gain no privilege, and what it knows reaches no core file.  For
 * debugging, MAILHERD_CORES=1 in the master's environment lifts the last one.
 * The template may die, hang or be stopped at any time: the next spawn() after
 * that starts another.  One that is replaced ends by itself when it has made
 * what it was asked for: the answers of all templates come by one socket.
 */
#include "config.h"

#include "proc/spawn.h"

#include "base/heap.h"
#include "base/log.h"
#include "ipc/channel.h"
#include "proc/confine.h"
#include "proc/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* Templates that were replaced and are not yet reaped; more are killed. */
#define READY_MSECS 60000 /* so long the parent of a daemon waits */
#define OLD_MAX 8

static struct child_entry entries[KIND_COUNT];

static struct {
	pid_t pid; /* 0: none */
	pid_t master;
	int fd;		/* the master's end */
	int answers[2]; /* for all templates; theirs is [1] */
	pid_t old[OLD_MAX];
} template;

struct request {
	struct child_start start; /* channel and task: not yet filled in */
	uint64_t memory_limit_bytes;
	unsigned char task[SPAWN_TASK_MAX];
};

void
spawn_init(const struct child_entry entry_points[KIND_COUNT])
{
	int i;

	memcpy(entries, entry_points, sizeof(entries));
	for (i = 0; i < KIND_COUNT; i++)
		if (entries[i].task_size > SPAWN_TASK_MAX)
			die_bug("the task of a %s child is too large",
			    child_kind_name((enum child_kind)i));
}

/* --- in the child -------------------------------------------------------- */

static _Noreturn void
become_child(struct request *request, pid_t helper)
{
	static const struct timespec pause = { .tv_nsec = 50000 };
	struct child_start *start = &request->start;

	/* it is on its way out */
	while (getppid() == helper)
		nanosleep(&pause, NULL);
	confine_bind(template.master);
	confine_descriptors(start->channel, -1);
	start->task = request->task;
	confine_memory(request->memory_limit_bytes);
	proc_set_title("%s", child_kind_name(start->kind));
	entries[start->kind].main(start);
	log_error(NULL, "%s: main function returned",
	    child_kind_name(start->kind));
	_exit(EXIT_BUG);
}

/* --- in the template ----------------------------------------------------- */

static _Noreturn void
become_helper(struct request *request, int report)
{
	pid_t self = getpid();
	struct spawned answer = {
		.generation = request->start.generation, .pid = fork() };

	if (answer.pid == 0)
		become_child(request, self);
	answer.fork_errno = errno;
	_exit(write(report, &answer, sizeof(answer)) ==
	    sizeof(answer) ? 0 : 1);
}

/* 1: request and channel are there; 0: the master has no more. */
static int
receive_request(int fd, struct request *request)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = request,
		.iov_len = sizeof(*request) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg;
	ssize_t n;

	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n == -1 && errno == EINTR);
	cmsg = CMSG_FIRSTHDR(&msg);
	if (n != sizeof(*request) || cmsg == NULL ||
	    cmsg->cmsg_type != SCM_RIGHTS)
		return 0;
	memcpy(&request->start.channel, CMSG_DATA(cmsg), sizeof(int));
	return 1;
}

/* Tells the pid when the helper is gone: the child is the master's by then. */
static int
make_child(struct request *request, const int report[2])
{
	struct spawned answer = {
		.generation = request->start.generation, .pid = -1 };
	pid_t helper = fork();

	if (helper == 0)
		become_helper(request, report[1]);
	answer.fork_errno = errno;
	close(request->start.channel);
	if (helper != -1) {
		while (waitpid(helper, NULL, 0) == -1 && errno == EINTR)
			;
		if (read(report[0], &answer, sizeof(answer)) !=
		    sizeof(answer))
			answer.fork_errno = EAGAIN; /* somebody killed it */
	}
	return send(template.answers[1], &answer, sizeof(answer),
	    MSG_NOSIGNAL) == sizeof(answer) ? 0 : -1;
}

static int ready_fd = -1; /* of a daemon: its parent waits at the other end */

/* Who started the daemon waits for the end of what it may write there. */
static void
leave_terminal(void)
{
	int null;

	if (ready_fd == -1)
		return;
	log_also_stderr(false);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null != -1) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		close(null);
	}
	close(ready_fd);
	ready_fd = -1;
}

static _Noreturn void
become_template(int fd)
{
	static struct request request; /* not one more page of stack */
	int report[2];

	leave_terminal();
	confine_bind(template.master);
	confine_descriptors(fd, template.answers[1]);
	confine_signals();
	slots_enter_child();
	confine_process();
	proc_set_title("template");
	heap_settle();
	if (pipe2(report, O_CLOEXEC | O_NONBLOCK) == -1)
		_exit(EXIT_RETRY);
	while (receive_request(fd, &request) &&
	    make_child(&request, report) == 0)
		;
	_exit(EXIT_DONE);
}

/* --- in the master ------------------------------------------------------- */

static int
prepare_master(struct err *err)
{
	/* A process of its own that was forked from one has inherited these. */
	if (template.master != 0 && template.master != getpid()) {
		close(template.answers[0]);
		close(template.answers[1]);
		if (template.pid != 0)
			close(template.fd);
		memset(&template, 0, sizeof(template));
	}
	if (template.master != 0)
		return 0;
	/* Children that their helper leaves behind are ours. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) == -1)
		die_bug("PR_SET_CHILD_SUBREAPER: %s", strerror(errno));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
		template.answers) == -1)
		return err_set(err, ERR_TEMPORARY, "socketpair: %s",
		    strerror(errno));
	template.master = getpid();
	return 0;
}

static int
start_template(struct err *err)
{
	sigset_t all, before;
	int fds[2], fork_errno;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1)
		return err_set(err, ERR_TEMPORARY, "socketpair: %s",
		    strerror(errno));
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	confine_prefer_for_oom(true);
	template.pid = fork();
	if (template.pid == 0)
		become_template(fds[1]);
	fork_errno = errno;
	confine_prefer_for_oom(false);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(fds[1]);
	template.fd = fds[0];
	if (template.pid != -1)
		return 0;
	template.pid = 0;
	close(template.fd);
	return err_set(err, ERR_TEMPORARY, "fork: %s", strerror(fork_errno));
}

/* Its end is noticed by who waits for children, to whom it is no stranger. */
static void
remember_old(pid_t pid)
{
	if (template.old[OLD_MAX - 1] != 0)
		kill(template.old[OLD_MAX - 1], SIGKILL);
	memmove(template.old + 1, template.old,
	    (OLD_MAX - 1) * sizeof(template.old[0]));
	template.old[0] = pid;
}

/* End of file ends it, after the requests that were sent before. */
void
spawn_renew(void)
{
	if (template.pid == 0 || template.master != getpid())
		return;
	remember_old(template.pid);
	template.pid = 0;
	close(template.fd);
}

void
spawn_give_up(pid_t maker)
{
	int i;

	if (maker == template.pid)
		spawn_renew();
	for (i = 0; i < OLD_MAX; i++)
		if (maker > 0 && template.old[i] == maker)
			kill(maker, SIGKILL);
}

bool
spawn_has_reaped(pid_t pid)
{
	int i;

	if (pid == template.pid)
		spawn_renew();
	for (i = 0; i < OLD_MAX; i++)
		if (template.old[i] == pid) {
			template.old[i] = 0;
			return true;
		}
	return false;
}

static int
send_request(const struct request *request, int channel)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .space = { 0 } };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)request,
		.iov_len = sizeof(*request) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &channel, sizeof(int));
	return sendmsg(template.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	    sizeof(*request) ? 0 : -1;
}

static int
hand_over(const struct request *request, int channel, struct err *err)
{
	if (template.pid == 0 && start_template(err) == -1)
		return -1;
	if (send_request(request, channel) == 0)
		return 0;
	if (errno == EAGAIN || errno == ETOOMANYREFS)
		return err_set(err, ERR_TEMPORARY,
		    "the template has too much to do");
	spawn_renew();
	return err_set(err, ERR_GONE, "the template has died");
}

static int
ask_template(const struct request *request, int channel, struct err *err)
{
	int result;

	if (prepare_master(err) == -1)
		return -1;
	result = hand_over(request, channel, err);
	/* One that died since the last child is replaced. */
	if (result == -1 && err->kind == ERR_GONE)
		result = hand_over(request, channel, err);
	return result;
}

/* The last descriptors are for what holds the leases: Redis, and files that
 * are open for a moment.  The lowest free number is what a new one gets. */
static int
leave_reserve(int channel, struct err *err)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == -1 ||
	    (rlim_t)channel + SPAWN_RESERVE < limit.rlim_cur)
		return 0;
	return err_set(err, ERR_TEMPORARY, "only %llu open files are allowed",
	    (unsigned long long)limit.rlim_cur);
}

static _Noreturn void
wait_until_ready(int fd, pid_t pid)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int status, left = READY_MSECS;
	char byte;

	while (poll(&pfd, 1, left) == -1 && errno == EINTR)
		;
	if (pfd.revents == 0) {
		fprintf(stderr, "mailherd: not ready after %d s; it goes on "
		    "trying, see its log\n", READY_MSECS / 1000);
		_exit(EX_TEMPFAIL);
	}
	if (read(fd, &byte, 1) == 1)
		_exit(EX_OK);
	while (waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			_exit(EX_OSERR);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EX_SOFTWARE);
}

int
proc_daemonize(struct err *err)
{
	int fds[2];
	pid_t pid;

	fflush(NULL);
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) == -1 || (pid = fork()) == -1)
		return err_set(err, ERR_TEMPORARY, "not into the background: "
		    "%s", strerror(errno));
	if (pid != 0) {
		close(fds[1]);
		wait_until_ready(fds[0], pid);
	}
	close(fds[0]);
	ready_fd = fds[1];
	if (setsid() == -1)
		return err_set(err, ERR_TEMPORARY, "setsid: %s",
		    strerror(errno));
	return 0;
}

static void
notify_manager(void)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	static const char text[] = "READY=1";
	size_t len = name != NULL ? strlen(name) : 0;
	int fd;

	if (len == 0 || len >= sizeof(addr.sun_path) ||
	    (name[0] != '/' && name[0] != '@'))
		return;
	memcpy(addr.sun_path, name, len);
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return;
	sendto(fd, text, sizeof(text) - 1, MSG_NOSIGNAL,
	    (const struct sockaddr *)&addr,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

void
proc_ready(void)
{
	notify_manager();
	if (ready_fd != -1)
		(void)!write(ready_fd, "r", 1);
	leave_terminal();
}

int
spawn_apart(int (*run)(const void *arg), const void *arg)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(run(arg));
	while (pid != -1 && waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			return -1;
	return pid != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int
spawn(struct child_start *start, uint64_t memory_limit_bytes, int *channel_r,
    struct err *err)
{
	static struct request request;
	int fds[2], result;

	if (entries[start->kind].main == NULL)
		die_bug("spawn before spawn_init");
	if (channel_pair(fds, err) == -1)
		return -1;
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) == -1)
		die_bug("O_NONBLOCK: %s", strerror(errno));
	memset(&request, 0, sizeof(request));
	request.start = *start;
	request.memory_limit_bytes = memory_limit_bytes;
	if (start->task != NULL)
		memcpy(request.task, start->task,
		    entries[start->kind].task_size);
	result = leave_reserve(fds[1], err) == -1 ? -1 :
	    ask_template(&request, fds[1], err);
	close(fds[1]);
	if (result == -1) {
		close(fds[0]);
		return err_prefix(err, "no %s child",
		    child_kind_name(start->kind));
	}
	start->maker = template.pid;
	*channel_r = fds[0];
	return 0;
}

int
spawn_answers(struct err *err)
{
	return prepare_master(err) == -1 ? -1 : template.answers[0];
}

bool
spawn_next(struct spawned *answer_r)
{
	ssize_t n;

	if (template.master != getpid())
		return false;
	do
		n = recv(template.answers[0], answer_r, sizeof(*answer_r),
		    MSG_DONTWAIT);
	while (n == -1 && errno == EINTR);
	return n == sizeof(*answer_r);
}
