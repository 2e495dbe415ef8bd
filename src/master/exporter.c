/*
 * exporter.c - the child that answers Prometheus.
 *
 * Runs in: master.  Never blocks.
 *
 * All that the master has to do with HTTP is to give this child a text, now
 * and then.  It may be taken over by what reaches its port, so it may ask for
 * nothing else (messages.c), and not too often: the text costs a walk over all
 * accounts.
 */
#include "master/exporter.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/xmem.h"
#include "master/child_end.h"
#include "master/children.h"
#include "master/metrics.h"
#include "redis/loop.h"

#include <stdlib.h>

/* It asks less often than that. */
#define PACE_MSECS 500
#define FIRST_MSECS 200
#define STAYED_MSECS 60000

struct exporter {
	struct master *m;
	struct child *child; /* NULL: none */
	struct event *respawn;
	unsigned failures; /* children that did not stay, in a row */
	int64_t told_mono;
	bool is_stopped;
};

static void
exporter_retry_later(struct exporter *exporter)
{
	exporter->failures++;
	event_in_msecs(exporter->respawn, backoff_msecs(exporter->failures,
	    FIRST_MSECS, exporter->m->conf->backoff_max * 1000,
	    arc4random()));
}

static void
exporter_start_child(struct exporter *exporter)
{
	struct err err = ERR_INIT;

	if (exporter->child != NULL || exporter->is_stopped ||
	    exporter->m->conf->metrics_listen[0] == '\0')
		return;
	exporter->child = child_spawn(exporter->m->children, KIND_METRICS,
	    DEADLINE_NONE, NULL, &err);
	if (exporter->child != NULL) {
		exporter->m->counters.child_starts++;
		return;
	}
	log_error(NULL, "%s", err.text);
	exporter_retry_later(exporter);
}

static void
exporter_on_respawn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	exporter_start_child(arg);
}

void
exporter_wanted(struct exporter *exporter, struct child *child)
{
	struct msg_metrics msg = { .len = 0 };
	int64_t now = clock_mono_msecs();
	char *text;
	size_t len, at;

	if (child != exporter->child ||
	    now - exporter->told_mono < PACE_MSECS) {
		child_talks_nonsense(child, "asks too often");
		return;
	}
	exporter->told_mono = now;
	text = metrics_text(exporter->m);
	len = strlen(text);
	for (at = 0; !msg.is_last; at += msg.len) {
		msg.len = len - at < sizeof(msg.text) ?
		    (uint32_t)(len - at) : sizeof(msg.text);
		msg.is_last = at + msg.len == len;
		memcpy(msg.text, text + at, msg.len);
		if (child_send(child, MSG_METRICS, &msg) == -1)
			break;
	}
	free(text);
}

void
exporter_ended(struct exporter *exporter, struct child *child)
{
	char how[64];

	if (exporter->child != child)
		return;
	exporter->child = NULL;
	if (exporter->is_stopped)
		return;
	if (child_end_meaning(child) == MEANS_AGAIN) {
		exporter_start_child(exporter);
		return;
	}
	log_warn(NULL, "metrics child ended: %s", child_exit_describe(
	    child->wait_status, how, sizeof(how)));
	if (clock_mono_msecs() - child->born_mono_msecs > STAYED_MSECS)
		exporter->failures = 0;
	exporter_retry_later(exporter);
}

void
exporter_renew(struct exporter *exporter)
{
	exporter->failures = 0;
	if (exporter->child == NULL) {
		exporter_start_child(exporter);
		return;
	}
	child_stop(exporter->child, "settings changed");
}

void
exporter_stop(struct exporter *exporter)
{
	exporter->is_stopped = true;
	event_del(exporter->respawn);
	if (exporter->child != NULL)
		child_stop(exporter->child, "shutdown");
}

struct exporter *
exporter_new(struct master *m)
{
	struct exporter *exporter = xcalloc(1, sizeof(*exporter));

	exporter->m = m;
	exporter->respawn =
	    event_new(m->base, -1, 0, exporter_on_respawn, exporter);
	exporter_start_child(exporter);
	return exporter;
}

void
exporter_free(struct exporter **exporter_p)
{
	struct exporter *exporter = *exporter_p;

	if (exporter == NULL)
		return;
	*exporter_p = NULL;
	event_free(exporter->respawn);
	free(exporter);
}
