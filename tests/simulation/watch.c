/*
 * watch.c - the judge: what must hold at every moment of every history.
 *
 * Who may work for an account is looked at whenever somebody becomes able to;
 * that nobody is forgotten, the load, the tiers and thrash every few seconds.
 */
#include "world.h"

#include "base/xmem.h"
#include "lease/claim.h"
#include "lease/keeper.h"
#include "master/accounts.h"
#include "master/children.h"

#define TICK_MSECS 5000
/* A promise of seconds is looked at so much later: travel, forks. */
#define GRACE_MSECS 3000
#define HOLDERS 6
/* A connection that hangs is given up, and the next is made. */
#define RECONNECT_MSECS 15000

struct worker_child {
	const void *child;
	struct process *process;
	int64_t deadline; /* boot of its host */
};

struct watched {
	struct process *holders[HOLDERS]; /* workers that may hold a lease */
	struct worker_child children[HOLDERS];
	int64_t orphan_since; /* NEVER: owned */
	uint32_t last_owner;
	int64_t won_at;
};

static struct {
	struct watched *accounts;
	int64_t calm_since;
	int64_t data_lost_at, wiped_at;
	uint64_t moves, wins; /* moves: from one worker to another */
	double worst_load; /* owned by one: times live / workers, settled */
	unsigned *over_budget; /* ticks in a row, by process */
	size_t cap_over;
	int64_t worst_orphan; /* msecs, of those within the bound */
} watch;

/* --- bounds ----------------------------------------------------------------- */

/*
 * Somebody who runs and reaches Redis and PostgreSQL owns every account that
 * nobody else owns after: the lease of the last owner runs out; then one round
 * in which all take their share and ROUNDS_OF_PATIENCE more, after which
 * anybody takes what is left; each round is a claim interval with its jitter,
 * and two questions to Redis for each page of accounts.
 */
int64_t
bound_owned(const struct conf *conf)
{
	int64_t pages = sim.n_accounts / CLAIM_MAX + 1;

	return (conf->lease_ttl + 4 * (conf->claim_interval +
	    conf->claim_jitter)) * 1000 + 4 * pages * 2 * 3 * sim.latency +
	    GRACE_MSECS;
}

/* The dead are no longer counted, all is claimed, excess was shed twice. */
int64_t
bound_settled(const struct conf *conf)
{
	int64_t claims = 4 * (conf->claim_interval + conf->claim_jitter);
	int64_t counted = conf->heartbeat_ttl + conf->heartbeat_interval;

	return (conf->lease_ttl + counted + claims +
	    2 * (conf->rebalance_interval + claims)) * 1000 + GRACE_MSECS;
}

/* --- two owners ---------------------------------------------------------------- */

static const struct account *
held(const struct process *process, uint32_t account)
{
	struct uuid id = account_uuid(account);
	const struct account *a;

	if (process == NULL || !process->actor.is_alive)
		return NULL;
	a = account_find(process->m.accounts, &id);
	return a != NULL && a->deadline_boot_msecs >
	    machine_boot(process->actor.machine) ? a : NULL;
}

/*
 * What cannot be known: a worker that starts at an empty Redis, with all who
 * were there before out of reach, takes it for the first start of all and
 * claims after a heartbeat interval.  Then PostgreSQL alone keeps writers
 * apart until the leases of before have run out.
 */
static bool
is_first_of_all(const struct process *process)
{
	int64_t soon = sim.conf->heartbeat_interval * 1000;
	size_t i;

	if (watch.wiped_at == NEVER || process->first_up < watch.wiped_at ||
	    sim.now > watch.wiped_at + sim.conf->lease_ttl * 1000)
		return false;
	for (i = 0; i < sim.n_processes; i++) {
		const struct process *p = sim.processes[i];

		if (p->first_up < watch.wiped_at && p->fit_since != NEVER &&
		    p->fit_since < watch.wiped_at + soon)
			return false;
	}
	return true;
}

static void
look_at_holders(struct process *process, uint32_t account)
{
	struct watched *w = &watch.accounts[account];
	struct process *other;
	unsigned i, place = HOLDERS;

	for (i = 0; i < HOLDERS; i++) {
		other = w->holders[i];
		if (other == process || held(other, account) == NULL) {
			w->holders[i] = NULL;
			place = i;
		} else if (held(process, account) != NULL &&
		    !is_first_of_all(process) && !is_first_of_all(other)) {
			violated("account %u: %s has a valid lease, and so has "
			    "%s", account, process->m.worker_id,
			    other->m.worker_id);
		}
	}
	if (place < HOLDERS)
		w->holders[place] = process;
}

void
watch_won(struct process *process, uint32_t account)
{
	struct watched *w = &watch.accounts[account];

	look_at_holders(process, account);
	watch.wins++;
	if (w->last_owner != process->serial) {
		watch.moves += w->last_owner != NOBODY;
		if (watch.calm_since + bound_settled(sim.conf) < sim.now &&
		    w->won_at > sim.rows[account].live_since)
			violated("account %u moved to %s though nothing has "
			    "happened for %lld s", account,
			    process->m.worker_id,
			    (long long)(sim.now - watch.calm_since) / 1000);
	}
	w->last_owner = process->serial;
	w->won_at = sim.now;
}

void
watch_renewed(struct process *process, uint32_t account)
{
	look_at_holders(process, account);
}

static bool
is_valid(const struct worker_child *c)
{
	return c->child != NULL &&
	    c->deadline > machine_boot(c->process->actor.machine);
}

void
watch_child(struct process *process, uint32_t account, const void *child,
    int64_t deadline)
{
	struct watched *w = &watch.accounts[account];
	struct worker_child mine = { child, process, deadline };
	unsigned i, place = HOLDERS, own = 1;

	for (i = 0; i < HOLDERS; i++) {
		struct worker_child *other = &w->children[i];

		if (other->child == child || other->child == NULL) {
			other->child = NULL;
			place = i;
		} else if (other->process == process) {
			own++;
		} else if (is_valid(&mine) && is_valid(other) &&
		    !is_first_of_all(process) &&
		    !is_first_of_all(other->process)) {
			violated("account %u: a child of %s may work, and one "
			    "of %s, too", account, process->m.worker_id,
			    other->process->m.worker_id);
		}
	}
	if (place == HOLDERS || own > 2)
		violated("account %u: %u children of %s", account, own,
		    process->m.worker_id);
	else
		w->children[place] = mine;
}

void
watch_step(const struct process *process, uint32_t account,
    int64_t deadline)
{
	if (deadline <= machine_boot(process->actor.machine))
		violated("account %u: a child of %s works on after the "
		    "deadline of its lease", account, process->m.worker_id);
}

void
watch_child_ends(uint32_t account, const void *child)
{
	struct watched *w = &watch.accounts[account];
	unsigned i;

	for (i = 0; i < HOLDERS; i++)
		if (w->children[i].child == child)
			w->children[i].child = NULL;
}

/* --- the fence -------------------------------------------------------------------- */

void
watch_write(uint32_t account, uint32_t serial, bool is_accepted)
{
	if (is_accepted && sim.rows[account].owner != serial)
		violated("account %u: PostgreSQL took a transaction of %s, which "
		    "is not the owner any more", account,
		    sim.processes[serial]->m.worker_id);
}

/* --- nobody is forgotten -------------------------------------------------------------- */

static bool
is_owned(uint32_t account)
{
	struct watched *w = &watch.accounts[account];
	const struct account *a;
	unsigned i;

	for (i = 0; i < HOLDERS; i++) {
		a = held(w->holders[i], account);
		if (a != NULL && a->state == OWNERSHIP_OWNED)
			return true;
	}
	return false;
}

static size_t
live_rows(void)
{
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < sim.n_accounts; i++)
		n += sim.rows[i].is_live;
	return n;
}

/* Since when somebody could have taken it; where one has no room for all,
 * since when all who are needed were there. */
static int64_t
somebody_fit_since(void)
{
	size_t i, n = 0, live = live_rows();
	size_t max = (size_t)sim.conf->max_accounts_per_worker;
	int64_t first = NEVER, last = 0;

	for (i = 0; i < sim.n_processes; i++) {
		const struct process *p = sim.processes[i];

		if (p->fit_since == NEVER)
			continue;
		n++;
		if (p->fit_since < first)
			first = p->fit_since;
		if (p->fit_since > last)
			last = p->fit_since;
	}
	if (n * max < live)
		return NEVER;
	return max < live ? last : first;
}

static int64_t
later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void
look_for_orphans(void)
{
	int64_t fit = somebody_fit_since(), since, bound, closed;
	/* Until all are connected again, and have heard of it. */
	int64_t lease = RECONNECT_MSECS + (sim.conf->lease_ttl +
	    sim.conf->heartbeat_interval) * 1000;
	uint32_t i;

	bound = bound_owned(sim.conf);
	/* A new era begins with no claims, for as long as a lease lasts. */
	closed = server_closed_until();
	fit = later(fit, closed);
	if (closed > watch.calm_since + lease + GRACE_MSECS)
		violated("nothing may be claimed for another %lld s",
		    (long long)(closed - sim.now) / 1000);
	for (i = 0; i < sim.n_accounts; i++) {
		struct watched *w = &watch.accounts[i];

		if (!sim.rows[i].is_live || is_owned(i)) {
			w->orphan_since = NEVER;
			continue;
		}
		if (w->orphan_since == NEVER)
			w->orphan_since = sim.now;
		if (fit == NEVER)
			continue;
		since = later(w->orphan_since, fit);
		since = later(since, sim.rows[i].live_since);
		/* What nobody put into the set comes with a reconcile. */
		if (!sim.rows[i].is_known)
			since += sim.conf->reconcile_interval * 1100;
		if (sim.now - since > watch.worst_orphan)
			watch.worst_orphan = sim.now - since;
		if (sim.now - since > bound)
			violated("account %u has no owner for %lld s", i,
			    (long long)(sim.now - since) / 1000);
	}
}

/* --- load --------------------------------------------------------------------------------- */

static void
look_at_load(void)
{
	size_t i, n = 0, live = server_live_count(), owned;
	double load;

	if (watch.calm_since + bound_settled(sim.conf) >= sim.now)
		return;
	for (i = 0; i < sim.n_processes; i++)
		n += sim.processes[i]->fit_since != NEVER;
	for (i = 0; n > 1 && i < sim.n_processes; i++) {
		if (sim.processes[i]->fit_since == NEVER)
			continue;
		owned = keeper_count(sim.processes[i]->m.keeper);
		load = (double)owned * (double)n / (double)(live + 1);
		if (load > watch.worst_load)
			watch.worst_load = load;
		if ((double)owned > 1.2 * (double)live / (double)n + 5)
			violated("%s owns %zu accounts; %zu are live and %zu "
			    "workers alive", sim.processes[i]->m.worker_id,
			    owned, live, n);
	}
}

/* --- tiers ---------------------------------------------------------------------------------- */

static enum tier
tier_by_age(const struct account *a, int64_t wall_secs)
{
	int64_t mail = wall_secs - a->facts.last_mail_secs;
	int64_t active = wall_secs - a->facts.last_active_secs;

	if (mail < sim.conf->tier_hot_activity_h * 3600)
		return TIER_HOT;
	if (mail < sim.conf->tier_cold_after_d * 86400 ||
	    active < sim.conf->tier_cold_after_d * 86400)
		return TIER_WARM;
	return TIER_COLD;
}

static void
look_at_tier(const struct process *p, const struct account *a)
{
	uint32_t account = uuid_number(&a->id);
	uint32_t user = sim.rows[account].user;
	int64_t slack = sim.conf->tier_interval * 1000 + GRACE_MSECS;
	int64_t wall = (machine_boot(p->actor.machine) +
	    p->actor.machine->wall_offset) / 1000;
	enum tier tier;

	if (server_session_left(user) > 0) {
		/* A fast clock ends it a moment early. */
		if (server_session_left(user) > GRACE_MSECS &&
		    sim.users[user].session_begin + slack < sim.now &&
		    a->tier != TIER_HOT)
			violated("account %u is %s, and its user has a session",
			    account, tier_name(a->tier));
		return;
	}
	if (sim.users[user].session_end + slack > sim.now)
		return;
	tier = tier_by_age(a, wall);
	if (a->tier != tier && !(tier == TIER_HOT && a->tier == TIER_WARM))
		violated("account %u is %s (%s) and should be %s", account,
		    tier_name(a->tier), a->rule, tier_name(tier));
}

/* Those without a session get what the others leave of the budget. */
static void
look_at_budget(struct process *p, size_t hot, size_t with_session)
{
	size_t budget = (size_t)sim.conf->hot_budget_per_worker;
	size_t room = budget > with_session ? budget - with_session : 0;
	size_t cap = watch.cap_over;

	if (p->serial >= cap) {
		watch.cap_over = sim.n_processes * 2;
		watch.over_budget = xreallocarray(watch.over_budget,
		    watch.cap_over, sizeof(*watch.over_budget));
		memset(watch.over_budget + cap, 0,
		    (watch.cap_over - cap) * sizeof(*watch.over_budget));
	}
	if (hot <= room) {
		watch.over_budget[p->serial] = 0;
		return;
	}
	if (++watch.over_budget[p->serial] >= 2)
		violated("%s: %zu accounts are hot without and %zu with a "
		    "session, the budget is %zu", p->m.worker_id, hot,
		    with_session, budget);
}

static void
look_at_tiers(void)
{
	int64_t settled = 2 * sim.conf->tier_interval * 1000 + GRACE_MSECS;
	size_t i, at, hot, with_session;
	const struct account *a;

	for (i = 0; i < sim.n_processes; i++) {
		struct process *p = sim.processes[i];

		if (p->fit_since == NEVER ||
		    sim.now - p->fit_since < settled ||
		    (watch.data_lost_at != NEVER &&
			sim.now - watch.data_lost_at < settled))
			continue;
		hot = with_session = 0;
		for (at = 0; (a = accounts_next(p->m.accounts, &at)) != NULL;) {
			if (a->state != OWNERSHIP_OWNED || a->tier != TIER_HOT)
				continue;
			with_session += a->facts.has_session;
			hot += !a->facts.has_session;
		}
		look_at_budget(p, hot, with_session);
		for (at = 0; (a = accounts_next(p->m.accounts, &at)) != NULL;)
			if (a->state == OWNERSHIP_OWNED &&
			    machine_mono(p->actor.machine) - a->since_mono > settled)
				look_at_tier(p, a);
	}
}

/* R-TIER-3: five seconds after user.active. */
static void
must_idle(void *arg, uint64_t tag)
{
	uint32_t account = (uint32_t)tag;
	struct process *p = arg;
	const struct account *a = held(p, account);
	bool is_late;

	if (watch.calm_since > sim.now - 30000 || a == NULL ||
	    a->state != OWNERSHIP_OWNED ||
	    health_hot_next(&a->health) > machine_mono(p->actor.machine) - 5000)
		return;
	/* A place at a full host may have come free just now. */
	is_late = a->no_idle == IDLE_ALLOWED && !child_is_in_idle(a->hot) &&
	    (a->hot == NULL || a->hot->born_mono_msecs <
		machine_mono(p->actor.machine) - 2000);
	if (a->tier != TIER_HOT || is_late)
		violated("account %u is %s%s 5 s after user.active", account,
		    tier_name(a->tier), is_late ? ", not idling," : "");
}

void
watch_user_active(uint32_t user)
{
	uint32_t i;
	unsigned k;

	for (i = user * 2; i < user * 2 + 2 && i < sim.n_accounts; i++)
		for (k = 0; k < HOLDERS; k++) {
			struct process *p = watch.accounts[i].holders[k];
			const struct account *a = held(p, i);

			if (a != NULL && a->state == OWNERSHIP_OWNED &&
			    p->fit_since != NEVER)
				world_at(sim.now + 5000, must_idle, p, i);
		}
}

/* --- life -------------------------------------------------------------------------------------- */

void
watch_disturbed(const char *what)
{
	(void)what;
	watch.calm_since = sim.now;
}

void
watch_data_lost(bool is_all)
{
	int64_t left;
	uint32_t i;

	/* Sessions, too, come back from the dead. */
	for (i = 0; i < sim.n_users; i++) {
		left = server_session_left(i);
		if (sim.users[i].session_end < sim.now + left)
			sim.users[i].session_end = sim.now + left;
	}
	watch.data_lost_at = sim.now;
	if (is_all)
		watch.wiped_at = sim.now;
	watch.calm_since = sim.now;
}

static void
tick(void *arg, uint64_t tag)
{
	size_t i;

	(void)arg;
	(void)tag;
	for (i = 0; i < sim.n_processes; i++)
		process_judge_fitness(sim.processes[i]);
	look_for_orphans();
	look_at_load();
	look_at_tiers();
	world_at(sim.now + TICK_MSECS, tick, NULL, 0);
}

void
watch_begin(void)
{
	world_at(TICK_MSECS, tick, NULL, 0);
}

void
watch_end(bool is_told)
{
	double hours = (double)sim.now / 3600000;

	if (is_told)
		printf("%llu wins, %.2f moves per account and hour, longest "
		    "without owner %lld s of %lld, most owned by one worker "
		    "%.2f times the mean\n", (unsigned long long)watch.wins,
		    (double)watch.moves / sim.n_accounts / hours,
		    (long long)watch.worst_orphan / 1000,
		    (long long)bound_owned(sim.conf) / 1000,
		    watch.worst_load);
}

void
watch_reset(void)
{
	uint32_t i;

	free(watch.accounts);
	free(watch.over_budget);
	memset(&watch, 0, sizeof(watch));
	watch.data_lost_at = watch.wiped_at = NEVER;
	if (sim.n_accounts == 0)
		return;
	watch.accounts = xcalloc(sim.n_accounts, sizeof(*watch.accounts));
	for (i = 0; i < sim.n_accounts; i++) {
		watch.accounts[i].orphan_since = NEVER;
		watch.accounts[i].last_owner = NOBODY;
	}
}
