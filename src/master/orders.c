/*
 * orders.c - what a master is told to do, by signal or control socket.
 *
 * Runs in: master.  Never blocks.
 *
 * Stopping: take nothing new; ask the children to end, which releases each
 * account's lease as its last child goes; kill what does not end; leave the
 * loop when the releases are answered, and in any case in time (R-OPS-2).
 */
#include "master/orders.h"

#include "master/children.h"
#include "master/clerk.h"
#include "master/exporter.h"
#include "master/state.h"
#include "proc/spawn.h"
#include "redis/loop.h"

#include <jansson.h>

/* After stop_timeout: time for SIGKILL to work and for the last releases. */
#define LAST_MSECS 1000

/* --- while it runs -------------------------------------------------------- */

void
orders_log_level(struct master *m, enum log_level level, int subsystem)
{
	struct msg_log_level msg = { .level = (int32_t)level,
		.subsystem = subsystem };
	struct child *child, *next;

	spawn_renew();
	for (child = children_first(m->children); child != NULL;
	    child = next) {
		next = child_next(child);
		child_send(child, MSG_LOG_LEVEL, &msg);
	}
}

int
orders_reload(struct master *m, struct json_t *reply, struct err *err)
{
	struct conf *fresh;
	char restart[512];

	if (conf_load(&fresh, m->params.file, m->params.overrides,
		m->params.n_overrides, err) == -1) {
		log_error(NULL, "settings not reloaded: %s", err->text);
		return -1;
	}
	conf_adopt(m->conf, fresh, restart, sizeof(restart));
	conf_free(&fresh);
	if (m->params.refresh != NULL)
		m->params.refresh();
	log_set_level((enum log_level)m->conf->log_level);
	orders_log_level(m, (enum log_level)m->conf->log_level, -1);
	log_info(NULL, "settings reloaded%s%s", restart[0] ?
	    ", these need a restart: " : "", restart);
	if (reply != NULL && restart[0] != '\0') {
		json_object_set_new(reply, "restart", json_string(restart));
		json_object_set_new(reply, "text", json_sprintf(
		    "configuration read again; only a restart changes %s",
		    restart));
	}
	spawn_renew();
	/* New settings reach children by fork. */
	clerk_renew(m->clerk);
	exporter_renew(m->exporter);
	m->role->reload(m);
	return 0;
}

void
orders_drain(struct master *m)
{
	log_info(NULL, "draining: takes nothing new");
	m->is_draining = true;
	m->role->drain(m);
}

void
orders_undrain(struct master *m)
{
	if (!m->is_draining)
		return;
	log_info(NULL, "no longer draining");
	m->is_draining = false;
	m->role->undrain(m);
}

/* --- the end -------------------------------------------------------------- */

static void
orders_on_stop_timer(evutil_socket_t fd, short what, void *arg)
{
	struct master *m = arg;

	(void)fd;
	(void)what;
	log_warn(NULL, "not everything ended in time: %zu children, leases "
	    "not yet released run out", children_count(m->children));
	event_base_loopbreak(m->base);
}

void
orders_stop_step(struct master *m)
{
	if (children_count(m->children) > 0 || !m->role->is_quiet(m))
		return;
	event_base_loopexit(m->base, NULL);
}

void
orders_stop(struct master *m, const char *why)
{
	struct child *child, *next;

	if (m->is_stopping)
		return;
	log_info(NULL, "stopping: %s", why);
	m->is_stopping = true;
	event_in_msecs(m->stop_timer, m->conf->stop_timeout * 1000 +
	    LAST_MSECS);
	m->role->stop(m);
	clerk_stop(m->clerk);
	exporter_stop(m->exporter);
	for (child = children_first(m->children); child != NULL;
	    child = next) {
		next = child_next(child);
		child_stop(child, "shutdown");
	}
	orders_stop_step(m);
}

/* --- life ----------------------------------------------------------------- */

void
orders_start(struct master *m)
{
	m->stop_timer = event_new(m->base, -1, 0, orders_on_stop_timer, m);
}

void
orders_end(struct master *m)
{
	event_free(m->stop_timer);
}
