/*
 * main.c - mockimapd, an IMAP server for tests: thousands of accounts in one
 * process, mail made on demand, faults on order.
 *
 * One event loop; nothing blocks.  Listens on loopback only.
 */
#include "config.h"

#include "control.h"
#include "fault.h"
#include "record.h"
#include "session.h"
#include "traffic.h"
#include "transport.h"
#include "world.h"

#include "base/log.h"

#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <errno.h>
#include <event2/listener.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

static const char usage_text[] =
"usage: mockimapd [-h] [-p PORT] [-s PORT] [-c PORT] [-u PATTERN]\n"
"                 [-P PASSWORD] [-S SEED] [-T CERT -K KEY] [-l FILE]\n"
"                 [-x FILE]\n"
"\n"
"  -p PORT      IMAP, with STARTTLS when there is a certificate (0: any)\n"
"  -s PORT      IMAP with TLS from the first byte (0: any; needs -T, -K)\n"
"  -c PORT      control port (0: any)\n"
"  -u PATTERN   logins that exist (u*); more groups on the control port\n"
"  -P PASSWORD  of all of them (secret)\n"
"  -S SEED      number the mail is made from (1)\n"
"  -T CERT, -K KEY  PEM files\n"
"  -l FILE      call log, a line per event, tabs between\n"
"  -x FILE      control commands to begin with, one a line\n"
"\n"
"Listens on 127.0.0.1.  Its ports are the first line of standard output:\n"
"{\"imap\":41001,\"imaps\":41002,\"control\":41003}.  SIGTERM ends it.\n"
"The control port is described in README.md beside the source.\n";

#define RING (512 * 1024)
#define BACKLOG 4096

struct options {
	int imap, imaps, control; /* ports; -1: none */
	const char *match, *password, *cert, *key, *log, *script;
	uint64_t seed;
};

static struct world world;
static struct control *control;

static _Noreturn void
usage(void)
{
	fputs(usage_text, stderr);
	exit(EX_USAGE);
}

static long long
number(const char *text, long long max)
{
	const char *why;
	long long n = strtonum(text, 0, max, &why);

	if (why != NULL) {
		fprintf(stderr, "mockimapd: %s: %s\n", text, why);
		exit(EX_USAGE);
	}
	return n;
}

static void
read_options(int argc, char **argv, struct options *o)
{
	int c;

	*o = (struct options){ 0, -1, 0, "u*", "secret", NULL, NULL, NULL,
		NULL, 1 };
	while ((c = getopt(argc, argv, "hp:s:c:u:P:S:T:K:l:x:")) != -1)
		switch (c) {
		case 'p': o->imap = (int)number(optarg, 65535); break;
		case 's': o->imaps = (int)number(optarg, 65535); break;
		case 'c': o->control = (int)number(optarg, 65535); break;
		case 'u': o->match = optarg; break;
		case 'P': o->password = optarg; break;
		case 'S': o->seed = (uint64_t)number(optarg, INT64_MAX); break;
		case 'T': o->cert = optarg; break;
		case 'K': o->key = optarg; break;
		case 'l': o->log = optarg; break;
		case 'x': o->script = optarg; break;
		case 'h': fputs(usage_text, stdout); exit(EX_OK);
		default: usage();
		}
	if (optind < argc || (o->cert == NULL) != (o->key == NULL) ||
	    (o->imaps >= 0 && o->cert == NULL))
		usage();
}

/* --- listening ----------------------------------------------------------- */

static void
on_imap(struct evconnlistener *listener, evutil_socket_t fd,
    struct sockaddr *from, int from_len, void *arg)
{
	const struct sockaddr_in *peer = (const struct sockaddr_in *)from;
	int on = 1;

	(void)listener;
	(void)from_len;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	session_open(&world, fd, ntohs(peer->sin_port), arg != NULL);
}

static void
on_control(struct evconnlistener *listener, evutil_socket_t fd,
    struct sockaddr *from, int from_len, void *arg)
{
	int on = 1;

	(void)listener;
	(void)from;
	(void)from_len;
	(void)arg;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	control_open(control, fd);
}

/* Out of descriptors and the like: it goes on when some are free. */
static void
on_error(struct evconnlistener *listener, void *arg)
{
	(void)listener;
	(void)arg;
	log_warn(NULL, "accept: %s", strerror(errno));
}

static struct evconnlistener *
listen_on(int port, evconnlistener_cb on_accept, void *arg, int *port_r)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	struct evconnlistener *listener;

	if (port < 0)
		return NULL;
	listener = evconnlistener_new_bind(world.base, on_accept, arg,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE |
		LEV_OPT_CLOSE_ON_EXEC, BACKLOG,
	    (struct sockaddr *)&address, sizeof(address));
	if (listener == NULL)
		die(EX_UNAVAILABLE, "port %d: %s", port, strerror(errno));
	evconnlistener_set_error_cb(listener, on_error);
	if (getsockname(evconnlistener_get_fd(listener),
		(struct sockaddr *)&address, &len) == 0)
		*port_r = ntohs(address.sin_port);
	return listener;
}

static void
print_ports(const int ports[3])
{
	printf("{\"imap\":%d,", ports[0]);
	if (ports[1] > 0)
		printf("\"imaps\":%d,", ports[1]);
	printf("\"control\":%d}\n", ports[2]);
	fflush(stdout);
}

/* --- beginning and end --------------------------------------------------- */

static void
on_signal(int number_, short what, void *arg)
{
	(void)number_;
	(void)what;
	(void)arg;
	event_base_loopbreak(world.base);
}

static void
on_reap(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	session_reap(&world);
}

static void
run_script(const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	if (file == NULL)
		die(EX_NOINPUT, "%s: %s", path, strerror(errno));
	while ((len = getline(&line, &cap, file)) > 0) {
		char *answer;

		if (line[0] == '#' || line[0] == '\n')
			continue;
		answer = control_answer(&world, line, (size_t)len);
		if (answer == NULL || strstr(answer, "\"ok\":true") == NULL)
			die(EX_DATAERR, "%s: %s: %s", path, line,
			    answer != NULL ? answer : "");
		free(answer);
	}
	free(line);
	fclose(file);
}

static void
raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void
world_open(const struct options *o)
{
	struct group *group;
	const char *why = "";

	world_init(&world, o->seed);
	group = world_group(&world, "default");
	strlcpy(group->match, o->match, sizeof(group->match));
	strlcpy(group->password, o->password, sizeof(group->password));
	world.base = event_base_new();
	world.arena = arena_new("command");
	world.reaper = event_new(world.base, -1, 0, on_reap, NULL);
	world.faults = faults_new();
	world.traffic = traffic_new(&world);
	world.record = record_new(RING, o->log);
	if (world.record == NULL)
		die(EX_CANTCREAT, "%s: %s", o->log, strerror(errno));
	if (o->cert != NULL &&
	    (world.tls = tls_server_new(o->cert, o->key, &why)) == NULL)
		die(EX_NOINPUT, "%s, %s: %s", o->cert, o->key, why);
	control = control_new(&world);
}

static void
world_close(void)
{
	struct session *s;

	while ((s = LIST_FIRST(&world.sessions)) != NULL)
		session_close(s, "server ends");
	session_reap(&world);
	control_free(&control);
	traffic_free(&world.traffic);
	world_release(&world);
	record_free(&world.record);
	faults_free(&world.faults);
	tls_server_free(&world.tls);
	event_free(world.reaper);
	arena_free(&world.arena);
	event_base_free(world.base);
}

int
main(int argc, char **argv)
{
	struct evconnlistener *listeners[3];
	struct event *signals[2];
	struct options o;
	int ports[3] = { 0, 0, 0 };

	log_open("mockimapd", LOG_TARGET_STDERR);
	read_options(argc, argv, &o);
	raise_limits();
	signal(SIGPIPE, SIG_IGN);
	world_open(&o);
	signals[0] = evsignal_new(world.base, SIGTERM, on_signal, NULL);
	signals[1] = evsignal_new(world.base, SIGINT, on_signal, NULL);
	for (size_t i = 0; i < 2; i++)
		event_add(signals[i], NULL);
	if (o.script != NULL)
		run_script(o.script);
	listeners[0] = listen_on(o.imap, on_imap, NULL, &ports[0]);
	listeners[1] = listen_on(o.imaps, on_imap, &world, &ports[1]);
	listeners[2] = listen_on(o.control, on_control, NULL, &ports[2]);
	print_ports(ports);
	event_base_dispatch(world.base);
	for (size_t i = 0; i < 3; i++)
		if (listeners[i] != NULL)
			evconnlistener_free(listeners[i]);
	for (size_t i = 0; i < 2; i++)
		event_free(signals[i]);
	world_close();
	return EX_OK;
}
