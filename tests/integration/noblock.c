/*
 * noblock.c - ends a master that makes a call which could block.
 *
 *	LD_PRELOAD=noblock.so mailherd -f ...
 *
 * Every master of the integration tests runs with it (herd.py).  "The master
 * never blocks" is thereby tested by all of them, whatever they are about: who
 * waits for somebody, waits for ever when that one is stuck, and all leases
 * are lost.  What counts is whether the call *could* wait, not whether it did.
 *
 * Only the master itself is watched, and only while it runs its loop: children
 * are straight lines of blocking code.  What it may do:
 *
 *	- wait for events, which libevent alone does (epoll_wait);
 *	- read and write descriptors that are non-blocking;
 *	- open, read and write regular files, which are a local disk's: the
 *	  configuration at a reload, the log, /proc, /etc/resolv.conf;
 *	- fork, which takes a millisecond and waits for nobody.
 *
 * Calls within libc do not come by here, so what uses them is named as such:
 * getaddrinfo, getpwnam, syslog, popen and so on.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <sys/types.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pwd.h>
#include <grp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

struct event_base;

static pid_t master; /* runs its loop; 0: nobody */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static bool
is_watched(void)
{
	return master != 0 && master == getpid();
}

/* Not by stdio or write(2): those are ours. */
static void
say(const char *text)
{
	syscall(SYS_write, STDERR_FILENO, text, strlen(text));
}

static void
complain(const char *call, int fd)
{
	void *frames[40];
	char line[200], path[64], what[100] = "";
	ssize_t n;

	master = 0; /* what follows is ours */
	if (fd >= 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, what, sizeof(what) - 1);
		what[n > 0 ? n : 0] = '\0';
	}
	snprintf(line, sizeof(line), "\nBLOCKING CALL in the master's loop: "
	    "%s, descriptor %d %s\n", call, fd, what);
	say(line);
	backtrace_symbols_fd(frames, backtrace(frames, 40), STDERR_FILENO);
	abort();
}

/* Regular files, and what is no device but memory (/dev/null, /dev/urandom). */
static bool
is_local(const struct stat *st)
{
	return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) ||
	    (S_ISCHR(st->st_mode) && major(st->st_rdev) == 1);
}

static bool
can_wait(int fd)
{
	struct stat st;
	int flags = (int)syscall(SYS_fcntl, fd, F_GETFL);

	return flags != -1 && (flags & O_NONBLOCK) == 0 &&
	    fstat(fd, &st) == 0 && !is_local(&st);
}

static void
check_fd(const char *call, int fd)
{
	if (is_watched() && can_wait(fd))
		complain(call, fd);
}

static void
forbid(const char *call)
{
	if (is_watched())
		complain(call, -1);
}

/* --- the loop ----------------------------------------------------------- */

int
event_base_dispatch(struct event_base *base)
{
	int (*real)(struct event_base *) = dlsym(RTLD_NEXT,
	    "event_base_dispatch");
	int result;

	master = getpid();
	result = real(base);
	master = 0;
	return result;
}

/* libevent waits here, and nobody else. */
static bool
is_of_libevent(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) != 0 && info.dli_fname != NULL &&
	    strstr(info.dli_fname, "libevent") != NULL;
}

int
epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
	if (timeout != 0 && !is_of_libevent(__builtin_return_address(0)))
		forbid("epoll_wait");
	return REAL(epoll_wait)(fd, events, n, timeout);
}

int
epoll_pwait2(int fd, struct epoll_event *events, int n,
    const struct timespec *timeout, const sigset_t *set)
{
	if (!is_of_libevent(__builtin_return_address(0)))
		forbid("epoll_pwait2");
	return REAL(epoll_pwait2)(fd, events, n, timeout, set);
}

int
poll(struct pollfd *fds, nfds_t n, int timeout)
{
	if (timeout != 0)
		forbid("poll");
	return REAL(poll)(fds, n, timeout);
}

int
ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
    const sigset_t *set)
{
	if (timeout == NULL || timeout->tv_sec != 0 || timeout->tv_nsec != 0)
		forbid("ppoll");
	return REAL(ppoll)(fds, n, timeout, set);
}

int
select(int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *timeout)
{
	if (timeout == NULL || timeout->tv_sec != 0 || timeout->tv_usec != 0)
		forbid("select");
	return REAL(select)(n, r, w, e, timeout);
}

/* --- descriptors -------------------------------------------------------- */

#define CHECKED(type, name, args, call) \
	type name args                  \
	{                               \
		check_fd(#name, fd);    \
		return REAL(name) call; \
	}

#define CHECKED_FLAGS(type, name, args, call)          \
	type name args                                 \
	{                                              \
		if ((flags & MSG_DONTWAIT) == 0)       \
			check_fd(#name, fd);           \
		return REAL(name) call;                \
	}

CHECKED(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n))
CHECKED(ssize_t, readv, (int fd, const struct iovec *p, int n), (fd, p, n))
CHECKED(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
CHECKED(ssize_t, writev, (int fd, const struct iovec *p, int n), (fd, p, n))
CHECKED_FLAGS(ssize_t, send, (int fd, const void *p, size_t n, int flags),
    (fd, p, n, flags))
CHECKED_FLAGS(ssize_t, sendto, (int fd, const void *p, size_t n, int flags,
    const struct sockaddr *to, socklen_t len), (fd, p, n, flags, to, len))
CHECKED_FLAGS(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags),
    (fd, m, flags))
CHECKED_FLAGS(ssize_t, recv, (int fd, void *p, size_t n, int flags),
    (fd, p, n, flags))
CHECKED_FLAGS(ssize_t, recvfrom, (int fd, void *p, size_t n, int flags,
    struct sockaddr *from, socklen_t *len), (fd, p, n, flags, from, len))
CHECKED_FLAGS(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags),
    (fd, m, flags))
/* What the compiler makes of some of them (_FORTIFY_SOURCE). */
ssize_t
__read_chk(int fd, void *p, size_t n, size_t size)
{
	return n <= size ? read(fd, p, n) : (abort(), -1);
}

ssize_t
__recv_chk(int fd, void *p, size_t n, size_t size, int flags)
{
	return n <= size ? recv(fd, p, n, flags) : (abort(), -1);
}

ssize_t
__recvfrom_chk(int fd, void *p, size_t n, size_t size, int flags,
    struct sockaddr *from, socklen_t *len)
{
	return n <= size ? recvfrom(fd, p, n, flags, from, len) :
	    (abort(), -1);
}

int
__poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
	return n <= size / sizeof(*fds) ? poll(fds, n, timeout) :
	    (abort(), -1);
}

CHECKED(int, accept, (int fd, struct sockaddr *a, socklen_t *len),
    (fd, a, len))
CHECKED(int, accept4, (int fd, struct sockaddr *a, socklen_t *len,
    int how), (fd, a, len, how))

int
connect(int fd, const struct sockaddr *to, socklen_t len)
{
	int type = SOCK_STREAM;
	socklen_t size = sizeof(type);

	/* Of a datagram socket it only notes the address. */
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == -1 ||
	    type != SOCK_DGRAM)
		check_fd("connect", fd);
	return REAL(connect)(fd, to, len);
}

int
close(int fd)
{
	struct linger linger = { 0, 0 };
	socklen_t size = sizeof(linger);

	if (is_watched() && syscall(SYS_getsockopt, fd, SOL_SOCKET,
		SO_LINGER, &linger, &size) == 0 && linger.l_onoff &&
	    linger.l_linger > 0)
		complain("close (lingers)", fd);
	return (int)syscall(SYS_close, fd);
}

static void
check_open(const char *path, int flags)
{
	struct stat st;

	if (is_watched() && (flags & O_NONBLOCK) == 0 &&
	    stat(path, &st) == 0 && !is_local(&st))
		complain(path, -1);
}

#define OPEN(name)                                          \
	int name(const char *path, int flags, ...)          \
	{                                                   \
		va_list ap;                                 \
		mode_t mode;                                \
		va_start(ap, flags);                        \
		mode = va_arg(ap, mode_t);                  \
		va_end(ap);                                 \
		check_open(path, flags);                    \
		return (int)syscall(SYS_openat, AT_FDCWD,   \
		    path, flags, mode);                     \
	}
OPEN(open)
OPEN(open64)

int
__open_2(const char *path, int flags)
{
	return open(path, flags, 0);
}

int
__open64_2(const char *path, int flags)
{
	return open(path, flags, 0);
}

FILE *
fopen(const char *path, const char *mode)
{
	check_open(path, 0);
	return REAL(fopen)(path, mode);
}

int
flock(int fd, int how)
{
	if ((how & LOCK_NB) == 0)
		forbid("flock");
	return REAL(flock)(fd, how);
}

int
fsync(int fd)
{
	forbid("fsync");
	return REAL(fsync)(fd);
}

int
fdatasync(int fd)
{
	forbid("fdatasync");
	return REAL(fdatasync)(fd);
}

/* --- processes, time ---------------------------------------------------- */

pid_t
waitpid(pid_t pid, int *status, int flags)
{
	if ((flags & WNOHANG) == 0)
		forbid("waitpid");
	return REAL(waitpid)(pid, status, flags);
}

pid_t
wait(int *status)
{
	forbid("wait");
	return REAL(wait)(status);
}

int
waitid(idtype_t type, id_t id, siginfo_t *info, int flags)
{
	if ((flags & WNOHANG) == 0)
		forbid("waitid");
	return REAL(waitid)(type, id, info, flags);
}

unsigned
sleep(unsigned secs)
{
	forbid("sleep");
	return REAL(sleep)(secs);
}

int
usleep(useconds_t usecs)
{
	forbid("usleep");
	return REAL(usleep)(usecs);
}

int
nanosleep(const struct timespec *time, struct timespec *left)
{
	forbid("nanosleep");
	return REAL(nanosleep)(time, left);
}

int
clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
    struct timespec *left)
{
	forbid("clock_nanosleep");
	return REAL(clock_nanosleep)(clock, flags, time, left);
}

int
system(const char *command)
{
	forbid("system");
	return REAL(system)(command);
}

FILE *
popen(const char *command, const char *mode)
{
	forbid("popen");
	return REAL(popen)(command, mode);
}

/* --- what asks others --------------------------------------------------- */

static bool
is_address(const char *host)
{
	unsigned char out[sizeof(struct in6_addr)];

	return host == NULL || inet_pton(AF_INET, host, out) == 1 ||
	    inet_pton(AF_INET6, host, out) == 1;
}

int
getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
    struct addrinfo **found)
{
	if (!is_address(host) &&
	    (hints == NULL || (hints->ai_flags & AI_NUMERICHOST) == 0))
		forbid("getaddrinfo");
	return REAL(getaddrinfo)(host, port, hints, found);
}

struct hostent *
gethostbyname(const char *name)
{
	forbid("gethostbyname");
	return REAL(gethostbyname)(name);
}

struct passwd *
getpwnam(const char *name)
{
	forbid("getpwnam");
	return REAL(getpwnam)(name);
}

struct passwd *
getpwuid(uid_t uid)
{
	forbid("getpwuid");
	return REAL(getpwuid)(uid);
}

struct group *
getgrnam(const char *name)
{
	forbid("getgrnam");
	return REAL(getgrnam)(name);
}

void
syslog(int priority, const char *fmt, ...)
{
	(void)priority, (void)fmt;
	forbid("syslog");
}

void
__syslog_chk(int priority, int flag, const char *fmt, ...)
{
	(void)priority, (void)flag, (void)fmt;
	forbid("syslog");
}

void
vsyslog(int priority, const char *fmt, va_list ap)
{
	(void)priority, (void)fmt, (void)ap;
	forbid("vsyslog");
}
