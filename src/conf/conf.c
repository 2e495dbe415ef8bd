/*
 * conf.c - reads the settings: preset, file, environment, -o.
 *
 * Runs in: every process, once at start and at SIGHUP.  Blocks on one file.
 *
 * libconfuse does the grammar and the line numbers and sees every setting as a
 * string: what a value may be is known to the table alone (options.c), so that
 * file, environment and command line are judged by the same words.
 */
#include "conf/conf.h"

#include "base/text.h"
#include "base/xmem.h"
#include "conf/options.h"
#include "conf/source.h"

#include <bsd/stdlib.h>

#define DEFAULT_FILE SYSCONFDIR "/mailherd/mailherd.conf"
#define HOST_CAP_MAX 10000
#define FOLDER_NAME_MAX 1000
#define N_OPTIONS_MAX 128

struct loader {
	struct conf *conf;
	/* Where each setting got its value, for contradictions. */
	char where[N_OPTIONS_MAX][300];
};

/* libconfuse hands its callbacks no pointer of ours; loading is not nested. */
static struct loader *loading;

static int
set_option(size_t i, const char *value, const char *where, struct err *err)
{
	snprintf(loading->where[i], sizeof(loading->where[i]), "%s", where);
	return option_set(&options[i], loading->conf, value, err);
}

static int
on_option(cfg_t *cfg, cfg_opt_t *opt)
{
	const char *value = cfg_opt_getnstr(opt, 0);
	struct err err = ERR_INIT;
	char where[300];

	if (set_option(option_find(cfg_opt_name(opt)),
		value != NULL ? value : "",
		source_where(cfg, where, sizeof(where)), &err) == 0)
		return 0;
	cfg_error(cfg, "%s", err.text);
	return -1;
}

static int
on_host_cap(cfg_t *section, cfg_opt_t *opt)
{
	struct conf *conf = loading->conf;
	const char *value = cfg_opt_getnstr(opt, 0), *why;
	long long cap = strtonum(value != NULL ? value : "", 1, HOST_CAP_MAX,
	    &why);

	if (why != NULL) {
		cfg_error(section, "host \"%s\": conn_cap = %s: must be a "
		    "whole number from 1 to %d", cfg_title(section),
		    value != NULL ? value : "", HOST_CAP_MAX);
		return -1;
	}
	conf->hosts = xreallocarray(conf->hosts, conf->n_hosts + 1,
	    sizeof(*conf->hosts));
	conf->hosts[conf->n_hosts++] = (struct conf_host){
		.name = xstrdup(cfg_title(section)), .conn_cap = cap };
	return 0;
}

static bool
is_folder_role(const char *role)
{
	static const char *const roles[] = { "inbox", "sent", "drafts",
		"archive", "trash", "junk", "all" };
	size_t i;

	for (i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (strcmp(roles[i], role) == 0)
			return true;
	return false;
}

static void
free_folder_names(struct conf *conf)
{
	size_t i;

	for (i = 0; i < conf->n_folder_names; i++) {
		free(conf->folder_names[i].name);
		free(conf->folder_names[i].role);
	}
	free(conf->folder_names);
	conf->folder_names = NULL;
	conf->n_folder_names = 0;
}

/* Called for the list as it is so far: begins anew each time. */
static int
on_folder_names(cfg_t *cfg, cfg_opt_t *opt)
{
	struct conf *conf = loading->conf;
	unsigned i, n = cfg_opt_size(opt);
	const char *entry, *equals;

	free_folder_names(conf);
	conf->folder_names = xcalloc(n > 0 ? n : 1,
	    sizeof(*conf->folder_names));
	for (i = 0; i < n; i++) {
		entry = cfg_opt_getnstr(opt, i);
		equals = strrchr(entry, '=');
		if (equals == NULL || equals == entry ||
		    equals - entry > FOLDER_NAME_MAX ||
		    !is_folder_role(equals + 1) ||
		    !text_is_utf8(entry, strlen(entry))) {
			cfg_error(cfg, "folder_names: an entry is \"NAME=ROLE\", "
			    "NAME in UTF-8, ROLE inbox, sent, drafts, archive, "
			    "trash, junk or all");
			return -1;
		}
		conf->folder_names[i] = (struct conf_folder_name){
			.name = xstrndup(entry, (size_t)(equals - entry)),
			.role = xstrdup(equals + 1) };
		conf->n_folder_names++;
	}
	return 0;
}

/* The schema of libconfuse, made of the table. */
static cfg_t *
conf_make_cfg(void)
{
	static cfg_opt_t host_opts[] = {
		CFG_STR("conn_cap", NULL, CFGF_NODEFAULT), CFG_END() };
	static cfg_opt_t opts[N_OPTIONS_MAX];
	const cfg_opt_t special[] = {
		CFG_SEC("host", host_opts,
		    CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
		CFG_STR_LIST("folder_names", NULL, CFGF_NONE), SOURCE_END };
	cfg_t *cfg;
	size_t i;

	if (n_options + 4 > N_OPTIONS_MAX)
		die_bug("N_OPTIONS_MAX is too small");
	for (i = 0; i < n_options; i++) {
		cfg_opt_t opt = CFG_STR(NULL, NULL, CFGF_NONE);

		opt.name = options[i].name;
		opts[i] = opt;
	}
	memcpy(&opts[n_options], special, sizeof(special));
	cfg = cfg_init(opts, CFGF_NONE);
	if (cfg == NULL)
		xmem_fail(sizeof(opts));
	for (i = 0; i < n_options; i++)
		cfg_set_validate_func(cfg, options[i].name, on_option);
	cfg_set_validate_func(cfg, "host|conn_cap", on_host_cap);
	cfg_set_validate_func(cfg, "folder_names", on_folder_names);
	return cfg;
}

static int
load_environment(struct err *err)
{
	char name[64], where[100];
	const char *value;
	size_t i;

	for (i = 0; i < n_options; i++) {
		value = getenv(option_env(&options[i], name, sizeof(name)));
		if (value == NULL)
			continue;
		snprintf(where, sizeof(where), "environment %s", name);
		if (set_option(i, value, where, err) == -1)
			return err_prefix(err, "%s", where);
	}
	return 0;
}

static int
load_override(const char *override, struct err *err)
{
	const char *equals = strchr(override, '=');
	char name[64];
	size_t i;

	if (equals == NULL)
		return err_set(err, ERR_CONFIG,
		    "-o %s: name=value expected", override);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - override),
	    override);
	i = option_find(name);
	if (i == SIZE_MAX)
		return err_set(err, ERR_CONFIG,
		    "-o %s: no such setting; mailherd.conf(5) lists them",
		    name);
	if (set_option(i, equals + 1, "-o", err) == -1)
		return err_prefix(err, "-o");
	return 0;
}

static int
conf_contradiction(
    const char *name, const char *other, const char *rule, struct err *err)
{
	const struct loader *l = loading;
	size_t i = option_find(name), j = option_find(other);

	return err_set(err, ERR_CONFIG,
	    "%s: %s = %lld contradicts %s = %lld (%s): %s", l->where[i], name,
	    (long long)*option_number(&options[i], l->conf), other,
	    (long long)*option_number(&options[j], l->conf), l->where[j],
	    rule);
}

static int
check_contradictions(const struct conf *c, struct err *err)
{
	if (c->lease_renew * 2 >= c->lease_ttl)
		return conf_contradiction("lease_renew", "lease_ttl",
		    "it must be less than half of it", err);
	if (c->heartbeat_ttl < c->heartbeat_interval * 2)
		return conf_contradiction("heartbeat_ttl", "heartbeat_interval",
		    "it must be at least twice as long", err);
	if (c->poll_cold < c->poll_warm)
		return conf_contradiction(
		    "poll_cold", "poll_warm", "it must not be shorter", err);
	if (c->backoff_max < c->backoff_first)
		return conf_contradiction("backoff_max", "backoff_first",
		    "it must not be shorter", err);
	if (c->pool_max < c->pool_min)
		return conf_contradiction(
		    "pool_max", "pool_min", "it must not be less", err);
	if (c->max_message_mb < c->stream_parse_mb)
		return conf_contradiction("max_message_mb", "stream_parse_mb",
		    "it must not be less", err);
	return 0;
}

static int
conf_load_all(const char *file, const char *text, size_t len,
    const char *const *overrides, size_t n_overrides, struct err *err)
{
	size_t i;

	for (i = 0; i < n_options; i++)
		if (set_option(i, options[i].preset, "preset", err) == -1)
			die_bug("preset: %s", err->text);
	if (source_parse(conf_make_cfg(), file, text, len, NULL, NULL, err) ==
	    -1)
		return -1;
	if (load_environment(err) == -1)
		return -1;
	for (i = 0; i < n_overrides; i++)
		if (load_override(overrides[i], err) == -1)
			return -1;
	return check_contradictions(loading->conf, err);
}

int
conf_load_text(struct conf **conf_r, const char *file, const char *text,
    size_t len, const char *const *overrides, size_t n_overrides,
    struct err *err)
{
	struct loader *l = xcalloc(1, sizeof(*l));
	int result;

	l->conf = xcalloc(1, sizeof(*l->conf));
	l->conf->file = xstrdup(file);
	loading = l;
	result = conf_load_all(file, text, len, overrides, n_overrides, err);
	loading = NULL;
	if (result == 0)
		*conf_r = l->conf;
	else
		conf_free(&l->conf);
	free(l);
	return result;
}

int
conf_load(struct conf **conf_r, const char *file, const char *const *overrides,
    size_t n_overrides, struct err *err)
{
	const char *name = file != NULL ? file : DEFAULT_FILE;
	struct buf text = BUF_INIT;
	struct err cause = ERR_INIT;
	int result = source_read(name, &text, &cause);

	if (result == -1 && cause.kind == ERR_GONE && file == NULL) {
		name = ""; /* nobody asked for the default file */
		result = 0;
	}
	if (result == -1)
		err_set(err, ERR_CONFIG, "%s", cause.text);
	else
		result = conf_load_text(conf_r, name, buf_str(&text),
		    text.len, overrides, n_overrides, err);
	buf_release(&text);
	return result;
}

void
conf_free(struct conf **conf)
{
	struct conf *c = *conf;
	size_t i;

	if (c == NULL)
		return;
	for (i = 0; i < n_options; i++)
		if (!option_is_number(&options[i]))
			free(*option_string(&options[i], c));
	for (i = 0; i < c->n_hosts; i++)
		free(c->hosts[i].name);
	free(c->hosts);
	free_folder_names(c);
	free(c->file);
	free(c);
	*conf = NULL;
}
