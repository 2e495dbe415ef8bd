/*
 * test_proc.c - children: what they inherit, when they die; slots.
 */
#include "config.h"

#include "base/clock.h"
#include "base/log.h"
#include "ipc/channel.h"
#include "proc/slots.h"
#include "proc/spawn.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MSECS 20000
#define TASK_SIZE 32

static struct err err;
static uint32_t taken[4];
static unsigned n_taken;

/* What a child does is what the test says. */
static void (*behaviour)(const struct child_start *start);

static void
test_main(const struct child_start *start)
{
	behaviour(start);
	_exit(EXIT_DONE);
}

static void
set_up(void)
{
	static const struct child_entry entries[KIND_COUNT] = {
		{ test_main, 0 }, { test_main, 0 },
		{ test_main, TASK_SIZE }, { test_main, 0 } };

	static bool has_slots; /* CK_FORK=no runs all tests in one process */

	spawn_init(entries);
	if (!has_slots)
		slots_init(4);
	has_slots = true;
	n_taken = 0;
}

static void
tear_down(void)
{
	while (n_taken > 0)
		slot_give_back(taken[--n_taken]);
}

static uint32_t
take(void)
{
	uint32_t slot = slot_take();

	if (slot != SLOT_NONE)
		taken[n_taken++] = slot;
	return slot;
}

#ifndef MAILHERD_SANITIZED
static bool
is_under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload != NULL && strstr(preload, "vgpreload") != NULL;
}
#endif

static bool is_readable_soon(int fd);

/* What a master does in its loop. */
static pid_t
await_pid(uint32_t generation)
{
	struct spawned answer;

	do
		ck_assert(is_readable_soon(spawn_answers(&err)));
	while (!spawn_next(&answer) || answer.generation != generation);
	return answer.pid;
}

static pid_t
start_child(void (*what)(const struct child_start *), uint32_t slot,
    uint64_t memory, int *channel_r)
{
	struct child_start start = { .kind = KIND_POOL, .generation = 3,
		.slot = slot };

	behaviour = what;
	spawn_renew();
	ck_assert_int_eq(spawn(&start, memory, channel_r, &err), 0);
	return await_pid(3);
}

static void
say(const struct child_start *start, const char *text)
{
	struct msg_activity activity = { .text = "" };
	struct err e;

	snprintf(activity.text, sizeof(activity.text), "%s", text);
	channel_send(start->channel, start->generation, MSG_ACTIVITY,
	    &activity, &e);
}

static bool
is_readable_soon(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int n;

	do
		n = poll(&pfd, 1, WAIT_MSECS);
	while (n == -1 && errno == EINTR);
	return n == 1;
}

static void
hears(int channel, const char *text)
{
	struct frame frame;

	ck_assert(is_readable_soon(channel));
	ck_assert_int_eq(channel_recv(channel, FROM_CHILD, &frame, &err), 1);
	ck_assert_uint_eq(frame.header.generation, 3);
	ck_assert_str_eq(frame.payload.activity.text, text);
}

static void
ends_as(pid_t pid, const char *how)
{
	char text[64];
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_str_eq(child_exit_describe(status, text, sizeof(text)), how);
}

/* --- what a child inherits -------------------------------------------------------- */

static void
count_descriptors(const struct child_start *start)
{
	int fd, others = 0;

	for (fd = 3; fd < 2000; fd++)
		if (fd != start->channel && fd != log_fd() &&
		    fcntl(fd, F_GETFD) != -1)
			others++;
	say(start, others == 0 && fcntl(log_fd(), F_GETFD) != -1 ? "closed" :
	    "descriptors left open");
}

START_TEST(a_child_holds_only_its_channel_and_the_log)
{
	char path[] = "/tmp/test_proc.XXXXXX";
	int channel, i, fds[10], log_file = mkstemp(path);
	pid_t pid;

	ck_assert_int_ne(log_file, -1);
	for (i = 0; i < 5; i++)
		fds[i] = open("/dev/null", O_RDONLY);
	ck_assert_int_eq(log_set_file(path), 0);
	for (; i < 10; i++)
		fds[i] = open("/dev/null", O_RDONLY);
	dup2(fds[0], 900);
	pid = start_child(count_descriptors, 0, 0, &channel);
	hears(channel, "closed");
	ends_as(pid, "done");
	log_set_file(NULL);
	unlink(path);
}
END_TEST

static void
on_signal(int sig)
{
	(void)sig;
	_exit(99);
}

static void
raise_signals(const struct child_start *start)
{
	raise(SIGHUP);
	raise(SIGUSR1);
	raise(SIGPIPE);
	say(start, "alive");
	raise(SIGTERM);
	say(start, "SIGTERM does nothing");
}

START_TEST(handlers_of_the_master_do_not_run_in_a_child)
{
	sigset_t term;
	int channel;
	pid_t pid;

	signal(SIGHUP, on_signal);
	signal(SIGTERM, on_signal);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	pid = start_child(raise_signals, 0, 0, &channel);
	hears(channel, "alive");
	ends_as(pid, "signal 15");
	/* and the master's are as they were */
	sigprocmask(SIG_BLOCK, NULL, &term);
	ck_assert(sigismember(&term, SIGTERM));
}
END_TEST

static void
look_at_limits(const struct child_start *start)
{
	struct rlimit core;

	getrlimit(RLIMIT_CORE, &core);
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		say(start, "may gain privileges");
#ifndef MAILHERD_SANITIZED
	else if (!is_under_valgrind() && (core.rlim_cur != 0 || prctl(PR_GET_DUMPABLE) != 0))
		say(start, "may dump core");
#endif
	else
		say(start, "confined");
}

START_TEST(a_child_is_confined)
{
	int channel;
	pid_t pid = start_child(look_at_limits, 0, 0, &channel);

	hears(channel, "confined");
	ends_as(pid, "done");
}
END_TEST

#ifndef MAILHERD_SANITIZED
static void
look_at_oom(const struct child_start *start)
{
	char text[16] = "";
	FILE *f = fopen("/proc/self/oom_score_adj", "re");

	if (f == NULL || fgets(text, sizeof(text), f) == NULL)
		say(start, "not told");
	else
		say(start, text);
}

/* Also one that was never root; it can still make its children the first to
 * go when memory is short, and not itself. */
START_TEST(a_master_hides_its_memory)
{
	char text[16] = "";
	FILE *f;
	int channel;
	pid_t pid;

	if (is_under_valgrind() || (geteuid() == 0 &&
		proc_drop_privileges("nobody", "nogroup", &err) == -1))
		return;
	prctl(PR_SET_DUMPABLE, 1);
	proc_hide_memory();
	ck_assert_int_eq(prctl(PR_GET_DUMPABLE), 0);
	pid = start_child(look_at_oom, 0, 0, &channel);
	hears(channel, "500\n");
	ends_as(pid, "done");
	f = fopen("/proc/self/oom_score_adj", "re");
	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), f));
	ck_assert_str_ne(text, "500\n");
	fclose(f);
}
END_TEST

static void
allocate_much(const struct child_start *start)
{
	volatile char *small = malloc(16 << 20), *big = malloc(128 << 20);

	say(start, small != NULL && big == NULL ? "limited" : "not limited");
}

START_TEST(memory_of_a_child_is_limited)
{
	int channel;
	pid_t pid;

	if (is_under_valgrind())
		return; /* there is no limit */
	pid = start_child(allocate_much, 0, 64 << 20, &channel);
	hears(channel, "limited");
	ends_as(pid, "done");
}
END_TEST
#endif

static char inherited[32] = "first";

static void
tell_inherited(const struct child_start *start)
{
	char text[64];

	snprintf(text, sizeof(text), "%s, %s", inherited,
	    (const char *)start->task);
	say(start, text);
}

static void
is_told(struct child_start *start, const char *text)
{
	int channel;
	pid_t pid;

	ck_assert_int_eq(spawn(start, 0, &channel, &err), 0);
	pid = await_pid(start->generation);
	hears(channel, text);
	ends_as(pid, "done");
	close(channel);
}

START_TEST(children_are_copies_of_what_was_when_it_was_last_renewed)
{
	char task[TASK_SIZE] = "one task";
	struct child_start start = { .kind = KIND_POOL, .generation = 3,
		.task = task };

	behaviour = tell_inherited;
	spawn_renew();
	is_told(&start, "first, one task");
	snprintf(inherited, sizeof(inherited), "second");
	snprintf(task, sizeof(task), "another");
	is_told(&start, "first, another");
	spawn_renew();
	is_told(&start, "second, another");
}
END_TEST

/* Nobody has waited for it yet, and nobody else may. */
static bool
becomes_zombie(pid_t pid)
{
	struct timespec pause = { .tv_nsec = 2000000 };
	int64_t end = clock_mono_msecs() + WAIT_MSECS;
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (state != 'Z' && clock_mono_msecs() < end) {
		nanosleep(&pause, NULL);
		f = fopen(path, "re");
		if (f == NULL)
			return false;
		if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = '?';
		fclose(f);
	}
	return state == 'Z';
}

START_TEST(a_template_that_is_killed_is_replaced)
{
	char task[TASK_SIZE] = "task";
	struct child_start start = { .kind = KIND_POOL, .generation = 3,
		.task = task };
	pid_t first;

	behaviour = tell_inherited;
	spawn_renew();
	is_told(&start, "first, task");
	first = start.maker;
	/* reaped by somebody who waits for everybody */
	kill(first, SIGKILL);
	ck_assert_int_eq(waitpid(first, NULL, 0), first);
	ck_assert(spawn_has_reaped(first));
	ck_assert(!spawn_has_reaped(first));
	is_told(&start, "first, task");
	ck_assert_int_ne(start.maker, first);
	/* dead and not yet reaped */
	first = start.maker;
	kill(first, SIGKILL);
	ck_assert(becomes_zombie(first));
	is_told(&start, "first, task");
	ck_assert_int_ne(start.maker, first);
	ck_assert_int_eq(waitpid(first, NULL, 0), first);
	ck_assert(spawn_has_reaped(first));
}
END_TEST

START_TEST(nobody_waits_for_a_template_that_is_stopped)
{
	char task[TASK_SIZE] = "task";
	struct child_start start = { .kind = KIND_POOL, .generation = 3,
		.task = task };
	struct spawned answer;
	int64_t begun;
	int channel, i;
	pid_t first;

	behaviour = tell_inherited;
	spawn_renew();
	is_told(&start, "first, task");
	first = start.maker;
	kill(first, SIGSTOP);
	begun = clock_mono_msecs();
	/* as many as fit into its socket, and then some */
	for (i = 0; i < 3000; i++)
		if (spawn(&start, 0, &channel, &err) == 0)
			close(channel);
	ck_assert_int_eq(spawn(&start, 0, &channel, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "too much to do"));
	ck_assert_int_lt(clock_mono_msecs() - begun, 3000);
	ck_assert_int_eq(start.maker, first);
	ck_assert(!spawn_next(&answer));
	spawn_give_up(first);
	ck_assert(becomes_zombie(first));
	start.generation = 4;
	ck_assert_int_eq(spawn(&start, 0, &channel, &err), 0);
	ck_assert_int_ne(start.maker, first);
	ck_assert_int_gt(await_pid(4), 0);
	/* to who waits for children, it is no stranger */
	ck_assert_int_eq(waitpid(first, NULL, 0), first);
	ck_assert(spawn_has_reaped(first));
}
END_TEST

START_TEST(a_template_that_is_replaced_makes_what_it_was_asked_for)
{
	char task[TASK_SIZE] = "task";
	struct child_start start = { .kind = KIND_POOL, .generation = 3,
		.task = task };
	int channel;
	pid_t pid;

	behaviour = tell_inherited;
	spawn_renew();
	is_told(&start, "first, task");
	kill(start.maker, SIGSTOP);
	ck_assert_int_eq(spawn(&start, 0, &channel, &err), 0);
	spawn_renew();
	kill(start.maker, SIGCONT);
	pid = await_pid(3);
	hears(channel, "first, task");
	ends_as(pid, "done");
	/* and ends */
	ck_assert_int_eq(waitpid(start.maker, NULL, 0), start.maker);
	ck_assert(spawn_has_reaped(start.maker));
}
END_TEST

/* --- when a child dies ------------------------------------------------------------ */

static void
wait_for_ever(const struct child_start *start)
{
	char byte;

	if (start->slot != SLOT_NONE)
		slot_arm(start->slot);
	say(start, "waiting");
	while (read(start->channel, &byte, 1) == -1 && errno == EINTR)
		;
	_exit(EXIT_MASTER_GONE);
}

/*
 * A child that was heard with half of the time to its deadline left.  On a
 * slow machine it may end before it is heard: the next one gets more time.
 */
static pid_t
start_in_time(void (*what)(const struct child_start *), uint32_t slot,
    int64_t msecs, const char *text, int *channel_r)
{
	struct frame frame;
	pid_t pid;

	for (;; msecs *= 2) {
		ck_assert_int_lt(msecs, WAIT_MSECS);
		slot_set_deadline(slot, clock_boot_msecs() + msecs);
		pid = start_child(what, slot, 0, channel_r);
		ck_assert(is_readable_soon(*channel_r));
		if (channel_recv(*channel_r, FROM_CHILD, &frame, &err) != 1) {
			ends_as(pid, "lease lost");
		} else {
			ck_assert_str_eq(frame.payload.activity.text, text);
			if (clock_boot_msecs() < slot_deadline(slot) -
			    msecs / 2)
				return pid;
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
		close(*channel_r);
	}
}

/* A master in a process of its own: tells the pid of its child, then waits;
 * ends with the child's exit status. */
static _Noreturn void
be_master(int report, uint32_t slot)
{
	int channel, status;
	pid_t pid;

	if (slot == SLOT_NONE) {
		pid = start_child(wait_for_ever, slot, 0, &channel);
		hears(channel, "waiting");
	} else {
		pid = start_in_time(wait_for_ever, slot, 400, "waiting",
		    &channel);
	}
	if (write(report, &pid, sizeof(pid)) != sizeof(pid) ||
	    waitpid(pid, &status, 0) != pid)
		_exit(1);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static pid_t
start_master(uint32_t slot, pid_t *child_r)
{
	int report[2];
	pid_t master;

	ck_assert_int_eq(pipe(report), 0);
	master = fork();
	if (master == 0)
		be_master(report[1], slot);
	close(report[1]);
	ck_assert_int_eq(read(report[0], child_r, sizeof(*child_r)),
	    sizeof(*child_r));
	close(report[0]);
	return master;
}

START_TEST(a_child_dies_with_its_master)
{
	pid_t master, child;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	master = start_master(SLOT_NONE, &child);
	kill(master, SIGKILL);
	ends_as(master, "signal 9");
	/* an orphan now, so ours; either line of defence may be first */
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
}
END_TEST

START_TEST(the_deadline_kills_a_blocked_child_of_a_stopped_master)
{
	uint32_t slot = take();
	pid_t master, child;

	master = start_master(slot, &child);
	kill(master, SIGSTOP);
	ck_assert(becomes_zombie(child));
	ck_assert_int_ge(clock_boot_msecs(), slot_deadline(slot));
	kill(master, SIGCONT);
	ends_as(master, "lease lost");
}
END_TEST

START_TEST(a_deadline_that_moves_is_followed)
{
	uint32_t slot = take();
	int64_t moved;
	int channel;
	pid_t pid;

	pid = start_in_time(wait_for_ever, slot, 1500, "waiting", &channel);
	moved = slot_deadline(slot) + 1500;
	slot_set_deadline(slot, moved);
	ends_as(pid, "lease lost");
	ck_assert_int_ge(clock_boot_msecs(), moved);
}
END_TEST

START_TEST(a_deadline_in_the_past_ends_a_child_at_once)
{
	uint32_t slot = take();
	int channel;

	slot_set_deadline(slot, 0);
	ends_as(start_child(wait_for_ever, slot, 0, &channel), "lease lost");
}
END_TEST

static void
arm_and_disarm(const struct child_start *start)
{
	struct frame frame;
	struct err e;

	slot_arm(start->slot);
	slot_disarm();
	say(start, "disarmed");
	channel_recv(start->channel, FROM_MASTER, &frame, &e);
}

START_TEST(a_disarmed_child_outlives_the_deadline)
{
	uint32_t slot = take();
	struct msg_empty empty = { 0 };
	struct timespec pause = { .tv_nsec = 20000000 };
	int channel;
	pid_t pid;

	pid = start_in_time(arm_and_disarm, slot, 1000, "disarmed", &channel);
	while (clock_boot_msecs() < slot_deadline(slot) + 50)
		nanosleep(&pause, NULL);
	ck_assert_int_eq(channel_send(channel, 3, MSG_STOP, &empty, &err), 0);
	ends_as(pid, "done");
}
END_TEST

/* --- slots -------------------------------------------------------------------------- */

static void
leave_note(const struct child_start *start)
{
	struct slot_note note = { .folder_id = 7, .step = 2, .uid_from = 10,
		.uid_to = 20 };

	slot_write_note(start->slot, &note);
	raise(SIGKILL);
}

START_TEST(the_note_of_a_dead_child_can_be_read)
{
	uint32_t slot = take();
	struct slot_note note;
	int channel;

	ends_as(start_child(leave_note, slot, 0, &channel), "signal 9");
	slot_read_note(slot, &note);
	ck_assert_uint_eq(note.step, 2);
	ck_assert_int_eq(note.folder_id, 7);
	ck_assert_uint_eq(note.uid_to, 20);
	slot_clear_note(slot);
	slot_read_note(slot, &note);
	ck_assert_uint_eq(note.step, 0);
}
END_TEST

static void
extend_own_deadline(const struct child_start *start)
{
	signal(SIGSEGV, SIG_DFL); /* a sanitizer's report would be a failure */
	slot_set_deadline(start->slot, DEADLINE_NONE);
}

START_TEST(a_child_cannot_move_a_deadline)
{
	uint32_t slot = take();
	int channel, status;
	pid_t pid;

	slot_set_deadline(slot, 12345);
	pid = start_child(extend_own_deadline, slot, 0, &channel);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	ck_assert_int_eq(slot_deadline(slot), 12345);
}
END_TEST

START_TEST(slots_run_out_and_come_back_clean)
{
	struct slot_note note = { .step = 1 };
	uint32_t last;
	unsigned i;

	for (i = 0; i < 4; i++)
		ck_assert_uint_ne(take(), SLOT_NONE);
	ck_assert_uint_eq(take(), SLOT_NONE);
	last = taken[--n_taken];
	slot_set_deadline(last, 5);
	slot_write_note(last, &note);
	slot_give_back(last);
	ck_assert_uint_eq(take(), last);
	ck_assert_int_eq(slot_deadline(last), DEADLINE_NONE);
	slot_read_note(last, &note);
	ck_assert_uint_eq(note.step, 0);
}
END_TEST

/* --- small things ------------------------------------------------------------------- */

START_TEST(ends_have_names)
{
	char text[64];

	ck_assert_str_eq(child_exit_describe(12 << 8, text, sizeof(text)),
	    "fenced");
	ck_assert_str_eq(child_exit_describe(99 << 8, text, sizeof(text)),
	    "exit 99");
	ck_assert_str_eq(child_exit_describe(11, text, sizeof(text)),
	    "signal 11");
	ck_assert_str_eq(child_kind_name(KIND_CLERK), "clerk");
}
END_TEST

static void
drop_for_good(const struct child_start *start)
{
	bool well = proc_drop_privileges("nobody", "nogroup", &err) == 0 &&
	    getuid() != 0 && setuid(0) == -1 &&
	    /* no longer root: nothing to drop */
	    proc_drop_privileges("nobody", "", &err) == 0;

	say(start, well ? "dropped" : "not dropped");
}

START_TEST(privileges_are_dropped_for_good)
{
	int channel;
	pid_t pid;

	ck_assert_int_eq(proc_drop_privileges("", "", &err), 0);
	if (geteuid() != 0)
		return;
	ck_assert_int_eq(proc_drop_privileges("no such user", "", &err), -1);
	ck_assert_int_eq(err.kind, ERR_CONFIG);
	ck_assert_int_eq(proc_drop_privileges("nobody", "no such group", &err),
	    -1);
	pid = start_child(drop_for_good, 0, 0, &channel);
	hears(channel, "dropped");
	ends_as(pid, "done");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("proc");
	TCase *tc = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, a_child_holds_only_its_channel_and_the_log);
	tcase_add_test(tc, handlers_of_the_master_do_not_run_in_a_child);
	tcase_add_test(tc, a_child_is_confined);
#ifndef MAILHERD_SANITIZED
	tcase_add_test(tc, a_master_hides_its_memory);
	tcase_add_test(tc, memory_of_a_child_is_limited);
#endif
	tcase_add_test(tc,
	    children_are_copies_of_what_was_when_it_was_last_renewed);
	tcase_add_test(tc, a_template_that_is_killed_is_replaced);
	tcase_add_test(tc, nobody_waits_for_a_template_that_is_stopped);
	tcase_add_test(tc,
	    a_template_that_is_replaced_makes_what_it_was_asked_for);
	tcase_add_test(tc, a_child_dies_with_its_master);
	tcase_add_test(tc,
	    the_deadline_kills_a_blocked_child_of_a_stopped_master);
	tcase_add_test(tc, a_deadline_that_moves_is_followed);
	tcase_add_test(tc, a_deadline_in_the_past_ends_a_child_at_once);
	tcase_add_test(tc, a_disarmed_child_outlives_the_deadline);
	tcase_add_test(tc, the_note_of_a_dead_child_can_be_read);
	tcase_add_test(tc, a_child_cannot_move_a_deadline);
	tcase_add_test(tc, slots_run_out_and_come_back_clean);
	tcase_add_test(tc, ends_have_names);
	tcase_add_test(tc, privileges_are_dropped_for_good);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
