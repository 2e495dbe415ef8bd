/*
 * world.h - what the parts of the simulation share.
 *
 * The workers in it are the real thing: src/lease without redis.c and alarm.c,
 * and of src/master the accounts, tiers, dispatch and pass results.  What they
 * stand on is put in the place of the real thing by the linker:
 *
 *	loop.c		clocks, libevent, alarm.c, random numbers
 *	redis.c		redis/redis.c and the Redis behind it
 *	tables.c	master/clerk.c and the PostgreSQL behind it
 *	children.c	master/children.c, proc/slots.c and the children
 *	worker.c	master/master.c
 *
 * plan.c makes a history out of a seed, watch.c says whether it was a good
 * one, breaks.c spoils a rule on purpose to see whether watch.c notices.
 */
#ifndef SIMULATION_WORLD_H
#define SIMULATION_WORLD_H

#include "base/uuid.h"
#include "conf/conf.h"
#include "master/state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEVER INT64_MAX
#define NOBODY UINT32_MAX
#define WALL_SECS 1800000000 /* Unix time at the beginning */

/* --- time (loop.c) ------------------------------------------------------- */

/* A machine: its clocks run at a pace of their own. */
struct machine {
	unsigned number;
	int64_t boot_base; /* CLOCK_BOOTTIME at the beginning */
	int64_t drift_ppm;
	int64_t slept;	     /* CLOCK_MONOTONIC stood still for so long */
	int64_t asleep_since; /* boot; 0: awake */
	int64_t wall_offset; /* CLOCK_REALTIME - CLOCK_BOOTTIME */
	int32_t next_pid;
};

/* Of what is due at the same time: redis/loop.h. */
enum urgency { URGENT_DEADLINE, URGENT_REDIS, URGENT_REST };

struct task {
	int64_t at;
	uint64_t seq;
	struct actor *actor; /* NULL: the world itself */
	uint32_t generation;
	enum urgency urgency;
	void (*run)(void *arg, uint64_t tag);
	void *arg;
	uint64_t tag;
};

/* A process, master or child: what happens to it while it is stopped waits
 * until it is continued, what happens after its end is dropped. */
struct actor {
	struct machine *machine;
	struct process *process; /* itself, or the master of a child */
	uint32_t generation;
	bool is_alive;
	unsigned frozen; /* reasons why it does not run */
	struct task *inbox;
	size_t n_inbox, cap_inbox;
};

void world_at(int64_t at, void (*run)(void *arg, uint64_t tag), void *arg,
    uint64_t tag);
void actor_at(struct actor *actor, int64_t at, enum urgency urgency,
    void (*run)(void *arg, uint64_t tag), void *arg, uint64_t tag);
void actor_freeze(struct actor *actor);
void actor_thaw(struct actor *actor);
void actor_end(struct actor *actor);
/* Runs everything up to that time. */
void loop_run(int64_t until);
void loop_reset(void);
uint64_t loop_steps(void);

int64_t machine_boot(const struct machine *machine);
int64_t machine_mono(const struct machine *machine);
/* When the host's CLOCK_BOOTTIME will show this. */
int64_t machine_time_of_boot(const struct machine *machine, int64_t boot);
void machine_sleep(struct machine *machine);
void machine_wake(struct machine *machine);

/* Three streams, so that a change of the product does not change what the
 * plan of a seed is. */
enum stream { FOR_PLAN, FOR_WORLD, FOR_PRODUCT, STREAM_COUNT };
void random_seed(uint64_t seed);
uint32_t random_below(enum stream stream, uint32_t n);
int64_t random_between(enum stream stream, int64_t low, int64_t high);
bool random_percent(enum stream stream, unsigned percent);

/* --- workers (worker.c) -------------------------------------------------- */

struct process {
	struct actor actor;
	uint32_t serial; /* of all incarnations; part of the worker id */
	struct master m;
	struct redis *redis; /* m.redis; kept while the master ends */
	int64_t fit_since;   /* runs and reaches Redis and PostgreSQL; NEVER */
	int64_t first_up;    /* knows Redis since then; NEVER */
	bool is_cut;	     /* from Redis */
	bool is_leaving; /* SIGTERM */
};

struct process *process_of(const struct master *m);
struct process *process_start(struct machine *machine);
void process_kill(struct process *process, const char *how);
void process_term(struct process *process);
/* The master has done all it wanted to before it ends. */
void process_maybe_ends(struct process *process);
void process_hears_user(struct process *process, uint32_t user);
void process_hears_state(struct process *process, uint32_t account);
void process_hears_release(struct process *process, uint32_t number);
/* Something about its fitness may have changed. */
void process_judge_fitness(struct process *process);
bool pid_is_alive(const struct machine *machine, int32_t pid);

/* --- accounts ------------------------------------------------------------ */

struct uuid account_uuid(uint32_t account);
struct uuid user_uuid(uint32_t user);
/* NOBODY: none of ours. */
uint32_t uuid_number(const struct uuid *id);
uint32_t text_number(const char *text);

/* --- PostgreSQL (tables.c) ----------------------------------------------- */

struct row {
	uint32_t user;
	bool is_live, is_deleted;
	bool is_known; /* who made it live told Redis */
	int64_t live_since;
	int64_t epoch;
	uint32_t owner;	  /* serial of the process that raised it last */
	int64_t last_mail_secs, last_active_secs;
	uint64_t mail;	 /* arrived at the mail server ... */
	uint64_t stored; /* ... and of that in our copy */
	int64_t mail_since;
};
struct user {
	int64_t session_begin, session_end;
};
void tables_reset(void);
void tables_set_live(uint32_t account, bool is_live);
/* A transaction of a child arrives: false: fenced, nothing was written. */
bool tables_write(uint32_t account, int64_t epoch, uint32_t serial);

/* --- Redis (redis.c) ------------------------------------------------------ */

void server_reset(void);
void server_crash(void);
void server_back(void);
void server_freeze(bool is_frozen);
void server_snapshot(void);
void server_load_snapshot(void);
void server_wipe(void);
bool server_answers(void);
bool server_is_up(void); /* perhaps it hangs */
/* Network between a worker and Redis. */
void link_cut(struct process *process);
void link_heal(struct process *process);
/* The application: PUBLISH, sessions, sync:live. */
void server_publish_user(uint32_t user);
void server_publish_state(uint32_t account);
void server_session(uint32_t user, int64_t msecs);
int64_t server_session_left(uint32_t user);
void server_set_live(uint32_t account, bool is_live);
size_t server_live_count(void);
/* The era's: no claims until then. */
int64_t server_closed_until(void);

/* --- children (children.c) ------------------------------------------------ */

struct child;
struct sim_child;
void children_reset(void);
/* SIGKILL to all of a dead master (PR_SET_PDEATHSIG), and memory back. */
void children_end_all(struct process *process);
/* A random one that lives, NULL: none. */
struct sim_child *children_random(struct process *process);
void child_freeze(struct sim_child *child, int64_t msecs);
void child_dies(struct sim_child *child, int wait_status, const char *how);
void children_freeze_all(struct process *process, bool is_frozen);
void children_mail(uint32_t account);
/* In truth, whatever the master has heard. */
bool child_is_in_idle(const struct child *child);

/* --- the judge (watch.c) --------------------------------------------------- */

void watch_reset(void);
void watch_begin(void);
void watch_won(struct process *process, uint32_t account);
void watch_renewed(struct process *process, uint32_t account);
/* A child may work for the account until then. */
void watch_child(struct process *process, uint32_t account,
    const void *child, int64_t deadline_boot);
/* It does something that the rest of the world sees. */
void watch_step(const struct process *process, uint32_t account,
    int64_t deadline_boot);
void watch_child_ends(uint32_t account, const void *child);
void watch_write(uint32_t account, uint32_t serial, bool is_accepted);
void watch_disturbed(const char *what);
void watch_data_lost(bool is_all);
void watch_user_active(uint32_t user);
/* is_told: with figures. */
void watch_end(bool is_told);

/* The bounds, as formulas of the settings. */
int64_t bound_owned(const struct conf *conf);
int64_t bound_settled(const struct conf *conf);

/* --- one run (simulate.c) -------------------------------------------------- */

/* Rules that can be spoilt; symbol, name, what is spoilt, a word of the judge
 * that then notices. */
#define BREAKS(X)                                                           \
	X(BREAK_NOTHING, "nothing", "all rules hold",                       \
	    "")                                                             \
	X(BREAK_RENEW, "renew", "renewal is a plain EXPIRE or SET",         \
	    "has a valid lease")                                            \
	X(BREAK_RELEASE, "release", "release deletes whoever's lease it is", \
	    "has a valid lease")                                            \
	X(BREAK_ANSWER, "answer", "deadline counts from a late answer",     \
	    "has a valid lease")                                            \
	X(BREAK_MARGIN, "margin", "no margin at the deadline, clocks drift", \
	    "has a valid lease")                                            \
	X(BREAK_BLIND, "blind", "children do not look at their deadline",   \
	    "works on after")                                               \
	X(BREAK_MONO, "mono", "deadlines on a clock that stops in suspend", \
	    "works on after")                                               \
	X(BREAK_FENCE, "fence", "PostgreSQL takes any epoch",               \
	    "PostgreSQL took")                                              \
	X(BREAK_ERA, "era", "a Redis that lost its memory looks the same",  \
	    "has a valid lease")                                            \
	X(BREAK_LEAK, "leak", "lost leases are not given up",               \
	    "has a valid lease")                                            \
	X(BREAK_BAND, "band", "no band between claiming and shedding",      \
	    "moved to")                                                     \
	X(BREAK_GREED, "greed", "claims without regard to the share",       \
	    "workers alive")                                                \
	X(BREAK_LAZY, "lazy", "one account in twenty is never claimed",     \
	    "has no owner")                                                 \
	X(BREAK_TURN, "turn", "nobody ever looks at all accounts",          \
	    "has no owner")                                                 \
	X(BREAK_BUDGET, "budget", "the hot budget is not looked at",        \
	    "the budget is")                                                \
	X(BREAK_TIER, "tier", "sessions do not make hot",                   \
	    "user.active")                                                  \
	X(BREAK_DEGRADE, "degrade", "sessions count against the budget",    \
	    "has a session")
enum broken {
#define X(symbol, name, what, words) symbol,
	BREAKS(X)
#undef X
	    BREAK_COUNT
};

struct sim {
	struct conf *conf;
	uint64_t seed;
	int64_t now;	  /* true time, msecs */
	int64_t end;
	int64_t calm_end; /* no faults from here to the end */
	enum broken broken;
	bool is_verbose;
	bool has_faults;

	struct machine *machines;
	unsigned n_machines;
	struct process **processes; /* all that ever were */
	size_t n_processes, cap_processes;
	struct row *rows;
	struct user *users;
	uint32_t n_accounts, n_users;
	bool is_postgres_up;
	int64_t latency; /* typical, one way */
	unsigned failures;
};
extern struct sim sim;
extern struct process *current; /* whose code is running; NULL: nobody's */

/* An invariant does not hold: tells, counts. */
void violated(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A line of the history (-v). */
void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* plan.c */
void plan_make(void);

/* breaks.c: the script that runs in place of this one. */
const char *break_script(const char *name, const char *source);

#endif
