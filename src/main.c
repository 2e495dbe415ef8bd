/*
 * main.c - mailherd(8): options, settings, what is loaded once, privileges.
 *
 * Runs in: the process that becomes the master.
 *
 * The only file that knows both sides: the master, and the children's entry
 * points.  Everything costly is loaded here, before the first fork, so that
 * all children share it.
 */
#include "config.h"

#include "base/log.h"
#include "child/child.h"
#include "conf/conf.h"
#include "conf/quirks.h"
#include "redis/client.h"
#include "master/master.h"
#include "proc/slots.h"
#include "proc/spawn.h"
#include "proc/vault.h"

#include <errno.h>
#include <libgen.h>
#include <malloc.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#define OVERRIDES_MAX 256
#define FILES_WANTED 65536

struct options {
	bool is_foreground, is_test;
	const char *file;
	const char *once; /* account of -1 */
	const char *overrides[OVERRIDES_MAX];
	size_t n_overrides;
};

static _Noreturn void
main_usage(void)
{
	fprintf(stderr, "usage: mailherd [-f] [-t] [-V] [-c file] "
	    "[-o name=value]... [-1 account]\n");
	exit(EX_USAGE);
}

static void
main_read_options(struct options *options, int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "ftVc:o:1:")) != -1) {
		switch (c) {
		case 'f':
			options->is_foreground = true;
			break;
		case 't':
			options->is_test = true;
			break;
		case 'V':
			printf("mailherd %s\n", PACKAGE_VERSION);
			exit(EX_OK);
		case 'c':
			options->file = optarg;
			break;
		case 'o':
			if (options->n_overrides == OVERRIDES_MAX)
				main_usage();
			options->overrides[options->n_overrides++] = optarg;
			break;
		case '1':
			options->once = optarg;
			break;
		default:
			main_usage();
		}
	}
	if (optind != argc)
		main_usage();
}

static void
open_log(const struct conf *conf, bool is_foreground)
{
	enum log_target target = (enum log_target)conf->log_target;

	/* A daemon has no standard error. */
	if (!is_foreground && target == LOG_TARGET_STDERR &&
	    conf->log_file[0] == '\0')
		target = LOG_TARGET_SYSLOG;
	log_open("mailherd", target);
	log_set_level((enum log_level)conf->log_level);
	if (target == LOG_TARGET_STDERR && conf->log_file[0] != '\0' &&
	    log_set_file(conf->log_file) == -1)
		die(EX_CANTCREAT, "log_file %s: %s", conf->log_file,
		    strerror(errno));
}

/* R-ROLE-3: a descriptor for each child, and some. */
static void
raise_limits(const struct conf *conf)
{
	struct rlimit limit;
	rlim_t want = FILES_WANTED;
	int64_t fits;

	if (getrlimit(RLIMIT_NOFILE, &limit) == -1)
		return;
	if (limit.rlim_max < want && geteuid() == 0)
		limit.rlim_max = want;
	limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
	if (setrlimit(RLIMIT_NOFILE, &limit) == -1)
		getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= want)
		return;
	fits = (int64_t)limit.rlim_cur - 64;
	log_warn(NULL, "only %llu open files allowed instead of %d: at most "
	    "%lld children fit, max_accounts_per_worker is %lld",
	    (unsigned long long)limit.rlim_cur, FILES_WANTED,
	    (long long)(fits > 0 ? fits : 0),
	    (long long)conf->max_accounts_per_worker);
}

static void
warn_of_root(const struct conf *conf)
{
	if (geteuid() == 0 && conf->user[0] == '\0')
		log_warn(NULL, "everything runs as root, also what reads "
		    "foreign mail: create a user and name it in the setting "
		    "user");
}

/* A directory for the user we become; parents are root's. */
static void
main_make_directory(const char *path, const struct passwd *pw)
{
	char part[512];
	size_t i;

	if (strlen(path) >= sizeof(part))
		return;
	for (i = 1; path[i] != '\0'; i++) {
		if (path[i] != '/')
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)i, path);
		mkdir(part, 0755);
	}
	if (mkdir(path, 0700) == -1)
		return; /* exists, or who needs it will tell */
	if (chown(path, pw->pw_uid, pw->pw_gid) == -1)
		log_warn(NULL, "%s: %s", path, strerror(errno));
}

/* As root, what the user we become could not make: the directory of the
 * control socket.  That of the blobs is made by mailherdctl init alone: where
 * it is missing, a file system is not mounted. */
static void
make_directories(const struct conf *conf)
{
	char path[256];
	struct passwd *pw;

	if (geteuid() != 0 || conf->user[0] == '\0' ||
	    (pw = getpwnam(conf->user)) == NULL)
		return;
	conf_control_socket(conf, path, sizeof(path));
	main_make_directory(dirname(path), pw);
}

static const struct quirks_table *
load_quirks(const struct conf *conf)
{
	struct quirks_table *quirks = NULL;
	struct err err = ERR_INIT;
	const char *file = conf->quirks_file;

	if (file[0] != '\0' && access(file, F_OK) == -1) {
		log_warn(NULL, "quirks_file %s: %s; servers get no special "
		    "treatment", file, strerror(errno));
		file = "";
	}
	if (quirks_load(&quirks, file, &err) == -1)
		die(EX_CONFIG, "%s", err.text);
	return quirks;
}

static void
main_load_all(const struct conf *conf, const struct quirks_table *quirks)
{
	static const struct child_entry entries[KIND_COUNT] = {
		[KIND_CLERK] = { clerk_main, 0 },
		[KIND_HOT] = { hot_main, sizeof(struct hot_task) },
		[KIND_POOL] = { pool_main, 0 },
		[KIND_JOB] = { job_main, sizeof(struct job_task) },
		[KIND_METRICS] = { metrics_main, 0 },
	};
	struct err err = ERR_INIT;

	child_init(conf, quirks);
	if (vault_load(conf->secret_key_file, &err) == -1)
		die(EX_CONFIG, "%s", err.text);
	slots_init(master_slots());
	spawn_init(entries);
}

/* What a person should know of the configuration file: who else reads the
 * passwords in it, and whether SIGHUP will be able to. */
static void
main_check_file(const struct conf *conf)
{
	struct stat st;

	if (conf->file[0] == '\0' || stat(conf->file, &st) == -1)
		return;
	if ((st.st_mode & S_IROTH) != 0 && conf_has_password(conf))
		log_warn(NULL, "%s: mode %04o lets everybody read the "
		    "password in it (chmod 0640, chgrp %s)", conf->file,
		    (unsigned)st.st_mode & 07777,
		    conf->group[0] != '\0' ? conf->group : "mailherd");
	if (access(conf->file, R_OK) == -1)
		log_warn(NULL, "%s: user %s cannot read it, a reload will "
		    "fail (chgrp %s, chmod 0640)", conf->file, conf->user,
		    conf->group[0] != '\0' ? conf->group : conf->user);
}

/* -t: all that a start needs, each complaint on a line of its own. */
static int
check_all(const struct conf *conf)
{
	struct lease_client *redis;
	struct err err = ERR_INIT;
	int rc = EX_OK, database;

	load_quirks(conf);
	if (vault_load(conf->secret_key_file, &err) == -1) {
		log_error(NULL, "secret_key_file: %s", err.text);
		rc = EX_CONFIG;
	}
	if (proc_drop_privileges(conf->user, conf->group, &err) == -1)
		die(EX_NOPERM, "%s", err.text);
	main_check_file(conf);
	database = spawn_apart(child_check_start, conf);
	if (rc == EX_OK)
		rc = database;
	if (lease_client_open(&redis, conf, &err) == -1) {
		log_error(NULL, "redis: %s", err.text);
		return rc == EX_OK ? EX_UNAVAILABLE : rc;
	}
	lease_client_close(&redis);
	return rc;
}

int
main(int argc, char **argv, char **envp)
{
	struct options options = { .file = NULL };
	const struct quirks_table *quirks;
	struct err err = ERR_INIT;
	struct conf *conf;

	proc_init_title(argc, argv, envp);
	log_open("mailherd", LOG_TARGET_STDERR);
	main_read_options(&options, argc, argv);
	if (conf_load(&conf, options.file, options.overrides,
		options.n_overrides, &err) == -1)
		die(EX_CONFIG, "%s", err.text);
	if (options.is_test)
		return check_all(conf);
	if (options.once != NULL)
		options.is_foreground = true;
	log_never_wait();
	open_log(conf, options.is_foreground);
	/* Paths in the settings may be relative: stay where we are. */
	if (!options.is_foreground && proc_daemonize(&err) == -1)
		die(EX_OSERR, "%s", err.text);
	log_also_stderr(!options.is_foreground);
	proc_hide_memory();
	warn_of_root(conf);
	raise_limits(conf);
	mallopt(M_ARENA_MAX, 1);
	make_directories(conf);
	if (options.once != NULL) {
		child_init(conf, load_quirks(conf));
		if (proc_drop_privileges(conf->user, conf->group, &err) == -1)
			die(EX_NOPERM, "%s", err.text);
		return child_run_once(conf, options.once);
	}
	quirks = load_quirks(conf);
	main_load_all(conf, quirks);
	if (proc_drop_privileges(conf->user, conf->group, &err) == -1)
		die(EX_NOPERM, "%s", err.text);
	proc_hide_memory();
	main_check_file(conf);
	/* Away is no reason to stop: it comes back. */
	if (spawn_apart(child_check_start, conf) == EX_CONFIG)
		return EX_CONFIG;
	proc_set_title("master %s %s", conf->worker_role == ROLE_SYNC ?
	    "sync" : "jobs", conf->instance);
	return master_main(&(struct master_params){ .conf = conf,
	    .refresh = child_refresh, .quirks = quirks, .file = options.file, .overrides = options.overrides,
	    .n_overrides = options.n_overrides });
}
