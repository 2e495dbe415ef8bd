/*
 * hosts.c - what this worker has learnt of each mail server.
 *
 * Runs in: master of the sync role.  Pure.
 *
 * The pace is a theoretical time of arrival (GCRA): each connection moves it by
 * one spacing, and it may run ahead of the clock by less than a second.  Levels
 * are not counted down by a timer: how many are left is worked out from when
 * the last complaint was.
 */
#include "master/hosts.h"

#include "base/xmem.h"
#include "ipc/messages.h" /* MSG_HOST_SIZE */

#include <bsd/string.h>
#include <bsd/sys/queue.h>

#include <stdlib.h>
#include <strings.h>

/* How far ahead of the clock the pace may run. */
#define BURST_MSECS 1000
/* So many accounts must have been told, within backoff_max. */
#define COMPLAINTS 3
#define LEVEL_MAX 6

struct complaint {
	struct uuid account;
	int64_t at; /* 0: none */
};

struct host {
	LIST_ENTRY(host) entry;
	char name[MSG_HOST_SIZE];
	unsigned refs;
	int64_t arrival; /* theoretical time of the next connection */
	int64_t hot_waits_at; /* the turn in which one did, last */

	struct complaint complaints[COMPLAINTS]; /* of different accounts */
	unsigned slow, narrow; /* levels, as of `since` */
	int64_t since;
	size_t narrow_from; /* connections when it began to count */
};

struct hosts {
	LIST_HEAD(, host) list;
};

/* --- the table ---------------------------------------------------------- */

struct hosts *
hosts_new(void)
{
	struct hosts *hosts = xcalloc(1, sizeof(*hosts));

	LIST_INIT(&hosts->list);
	return hosts;
}

void
hosts_free(struct hosts **hosts_p)
{
	struct host *host;

	if (*hosts_p == NULL)
		return;
	while ((host = LIST_FIRST(&(*hosts_p)->list)) != NULL) {
		LIST_REMOVE(host, entry);
		free(host);
	}
	free(*hosts_p);
	*hosts_p = NULL;
}

/* Nobody uses it, and nothing is remembered that would matter. */
static bool
host_is_forgettable(const struct host *host, int64_t now)
{
	return host->refs == 0 && host->slow == 0 && host->narrow == 0 &&
	    host->arrival < now;
}

struct host *
hosts_acquire(struct hosts *hosts, const char *name, int64_t now)
{
	struct host *host, *next, *found = NULL;

	for (host = LIST_FIRST(&hosts->list); host != NULL; host = next) {
		next = LIST_NEXT(host, entry);
		if (strcasecmp(host->name, name) == 0) {
			found = host;
		} else if (host_is_forgettable(host, now)) {
			LIST_REMOVE(host, entry);
			free(host);
		}
	}
	if (found == NULL) {
		found = xcalloc(1, sizeof(*found));
		strlcpy(found->name, name, sizeof(found->name));
		LIST_INSERT_HEAD(&hosts->list, found, entry);
	}
	found->refs++;
	return found;
}

void
hosts_release(struct hosts *hosts, struct host **host_p, int64_t now)
{
	struct host *host = *host_p;

	(void)hosts;
	if (host == NULL)
		return;
	*host_p = NULL;
	host->refs--;
	if (host_is_forgettable(host, now)) {
		LIST_REMOVE(host, entry);
		free(host);
	}
}

/* --- complaints --------------------------------------------------------- */

static int64_t
host_step_msecs(const struct conf *conf)
{
	return conf->backoff_max * 1000;
}

/* A level is forgotten with each step that passes without complaint. */
static unsigned
host_level(const struct host *host, unsigned level, const struct conf *conf,
    int64_t now)
{
	int64_t passed = (now - host->since) / host_step_msecs(conf);

	return passed >= level ? 0 : level - (unsigned)passed;
}

/* Are there enough, of different accounts and recent? */
static bool
host_note_complaint(struct host *host, const struct conf *conf,
    const struct uuid *account, int64_t now)
{
	struct complaint *c, *oldest = host->complaints;
	size_t i, recent = 0;

	for (i = 0; i < COMPLAINTS; i++) {
		c = &host->complaints[i];
		if (c->at != 0 && uuid_is_equal(&c->account, account))
			break;
		if (c->at < oldest->at)
			oldest = c;
	}
	c = i < COMPLAINTS ? &host->complaints[i] : oldest;
	*c = (struct complaint){ .account = *account, .at = now };
	for (i = 0; i < COMPLAINTS; i++)
		if (host->complaints[i].at != 0 &&
		    now - host->complaints[i].at < host_step_msecs(conf))
			recent++;
	return recent == COMPLAINTS;
}

void
host_complains(struct host *host, const struct conf *conf,
    const struct uuid *account, bool is_limit, size_t in_use, int64_t now)
{
	if (!host_note_complaint(host, conf, account, now))
		return;
	memset(host->complaints, 0, sizeof(host->complaints));
	host->slow = host_level(host, host->slow, conf, now);
	host->narrow = host_level(host, host->narrow, conf, now);
	host->since = now;
	if (!is_limit) {
		if (host->slow < LEVEL_MAX)
			host->slow++;
		return;
	}
	if (host->narrow == 0)
		host->narrow_from = in_use;
	if (host->narrow < LEVEL_MAX)
		host->narrow++;
}

/* --- what is allowed ---------------------------------------------------- */

size_t
host_cap(const struct host *host, const struct conf *conf, int64_t now)
{
	size_t cap = (size_t)conf_host_cap(conf, host->name);
	unsigned level = host_level(host, host->narrow, conf, now);

	if (level == 0)
		return cap;
	if (host->narrow_from < cap)
		cap = host->narrow_from;
	while (level-- > 0)
		cap = cap * 3 / 4;
	return cap > 1 ? cap : 1;
}

int64_t
host_rate(const struct host *host, const struct conf *conf, int64_t now)
{
	int64_t rate = conf->host_connect_rate >>
	    host_level(host, host->slow, conf, now);

	return rate > 1 ? rate : 1;
}

int64_t
host_throttled_until(const struct host *host, const struct conf *conf,
    int64_t now)
{
	unsigned level = host->slow > host->narrow ? host->slow :
	    host->narrow;

	if (host_level(host, level, conf, now) == 0)
		return 0;
	return host->since + level * host_step_msecs(conf);
}

static int64_t
host_spacing(const struct host *host, const struct conf *conf, int64_t now)
{
	return 1000 / host_rate(host, conf, now);
}

int64_t
host_ready(const struct host *host, const struct conf *conf, int64_t now)
{
	return host->arrival - BURST_MSECS + host_spacing(host, conf, now);
}

void
host_hot_waits(struct host *host, int64_t now)
{
	host->hot_waits_at = now;
}

bool
host_has_hot_waiting(const struct host *host, int64_t now)
{
	return host->hot_waits_at == now;
}

void
host_begins(struct host *host, const struct conf *conf, int64_t now)
{
	if (host->arrival < now)
		host->arrival = now;
	host->arrival += host_spacing(host, conf, now);
}
