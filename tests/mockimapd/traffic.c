/*
 * traffic.c - mail that keeps coming by itself.
 *
 * Runs in: mockimapd.  Never blocks.
 */
#include "config.h"

#include "traffic.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "mailbox.h"
#include "session.h"

#include <bsd/string.h>
#include <fnmatch.h>

#define TICK_MSECS 50

struct traffic {
	struct world *world;
	struct event *tick;
	double per_second, owed;
	int64_t last_msecs;
	uint64_t random;
	char match[128];
};

/* NULL when none was found that matches. */
static struct account *
pick(struct traffic *traffic)
{
	struct world *world = traffic->world;

	for (int tries = 0; tries < 1000 && world->n_accounts > 0; tries++) {
		struct account *account;

		traffic->random = mail_mix(traffic->random);
		account = world->accounts[traffic->random %
		    world->n_accounts];
		if (fnmatch(traffic->match, account->login, 0) == 0)
			return account;
	}
	return NULL;
}

static void
deliver_one(struct traffic *traffic)
{
	struct account *account = pick(traffic);
	struct folder *inbox = account == NULL ? NULL :
	    folder_find(account, "INBOX");

	if (inbox == NULL)
		return;
	folder_deliver(inbox, 0, clock_wall_secs());
	account->counters.delivered++;
	traffic->world->totals.delivered++;
	session_announce(inbox);
}

static void
on_tick(int fd, short what, void *arg)
{
	struct traffic *traffic = arg;
	int64_t now = clock_mono_msecs();

	(void)fd;
	(void)what;
	traffic->owed += traffic->per_second *
	    (double)(now - traffic->last_msecs) / 1000;
	traffic->last_msecs = now;
	for (; traffic->owed >= 1; traffic->owed--)
		deliver_one(traffic);
}

struct traffic *
traffic_new(struct world *world)
{
	struct traffic *traffic = xcalloc(1, sizeof(*traffic));

	traffic->world = world;
	traffic->random = world->seed;
	traffic->tick = event_new(world->base, -1, EV_PERSIST, on_tick,
	    traffic);
	return traffic;
}

void
traffic_free(struct traffic **traffic)
{
	if (*traffic == NULL)
		return;
	event_free((*traffic)->tick);
	free(*traffic);
	*traffic = NULL;
}

void
traffic_set(struct traffic *traffic, double per_second, const char *match)
{
	static const struct timeval tick = { 0, TICK_MSECS * 1000 };

	traffic->per_second = per_second;
	traffic->owed = 0;
	traffic->last_msecs = clock_mono_msecs();
	strlcpy(traffic->match, match, sizeof(traffic->match));
	if (per_second > 0)
		event_add(traffic->tick, &tick);
	else
		event_del(traffic->tick);
}
