/*
 * reload.c - settings in use: taken over at SIGHUP, asked for, printed.
 *
 * Runs in: every process.  Never blocks.
 */
#include "config.h"

#include "base/xmem.h"
#include "conf/options.h"

#include <strings.h>

static bool
reload_is_same(
    const struct option *option, const struct conf *a, const struct conf *b)
{
	if (option_is_number(option))
		return *option_number(option, a) == *option_number(option, b);
	return strcmp(*option_string(option, a), *option_string(option, b)) ==
	    0;
}

static void
reload_take_over(
    const struct option *option, struct conf *running, const struct conf *fresh)
{
	if (option_is_number(option)) {
		*option_number(option, running) =
		    *option_number(option, fresh);
		return;
	}
	free(*option_string(option, running));
	*option_string(option, running) =
	    xstrdup(*option_string(option, fresh));
}

static void
take_over_hosts(struct conf *running, const struct conf *fresh)
{
	size_t i;

	for (i = 0; i < running->n_hosts; i++)
		free(running->hosts[i].name);
	running->n_hosts = fresh->n_hosts;
	running->hosts = xreallocarray(running->hosts, fresh->n_hosts + 1,
	    sizeof(*running->hosts));
	for (i = 0; i < fresh->n_hosts; i++) {
		running->hosts[i] = fresh->hosts[i];
		running->hosts[i].name = xstrdup(fresh->hosts[i].name);
	}
}

static void
take_over_folder_names(struct conf *running, const struct conf *fresh)
{
	size_t i;

	for (i = 0; i < running->n_folder_names; i++) {
		free(running->folder_names[i].name);
		free(running->folder_names[i].role);
	}
	running->n_folder_names = fresh->n_folder_names;
	running->folder_names = xreallocarray(running->folder_names,
	    fresh->n_folder_names + 1, sizeof(*running->folder_names));
	for (i = 0; i < fresh->n_folder_names; i++) {
		running->folder_names[i].name =
		    xstrdup(fresh->folder_names[i].name);
		running->folder_names[i].role =
		    xstrdup(fresh->folder_names[i].role);
	}
}

const char *
conf_adopt(struct conf *running, const struct conf *fresh, char *restart_r,
    size_t size)
{
	size_t i, used = 0;

	restart_r[0] = '\0';
	for (i = 0; i < n_options; i++) {
		if (reload_is_same(&options[i], running, fresh))
			continue;
		if (options[i].reload == CONF_RELOAD_LIVE)
			reload_take_over(&options[i], running, fresh);
		else if (used < size)
			used += (size_t)snprintf(restart_r + used, size - used,
			    "%s%s", used > 0 ? ", " : "", options[i].name);
	}
	take_over_hosts(running, fresh);
	take_over_folder_names(running, fresh);
	return restart_r;
}

int64_t
conf_host_cap(const struct conf *conf, const char *host)
{
	size_t i;

	for (i = 0; i < conf->n_hosts; i++)
		if (strcasecmp(conf->hosts[i].name, host) == 0)
			return conf->hosts[i].conn_cap;
	return conf->per_host_conn_cap;
}

const char *
conf_control_socket(const struct conf *conf, char *out, size_t size)
{
	const char *dir = conf->control_socket[0] != '\0' ?
	    conf->control_socket : RUNDIR "/mailherd/";

	if (dir[strlen(dir) - 1] != '/')
		snprintf(out, size, "%s", dir);
	else
		snprintf(out, size, "%s%s-%s.sock", dir,
		    conf->worker_role == ROLE_SYNC ? "sync" : "jobs",
		    conf->instance);
	return out;
}

/* A conninfo may hold a password, in either of libpq's two forms. */
static bool
may_hold_password(const struct option *option, const char *value)
{
	if (option->type == CONF_SECRET)
		return value[0] != '\0';
	return strcmp(option->name, "database") == 0 &&
	    (strcasestr(value, "password") != NULL ||
		(strstr(value, "://") != NULL && strchr(value, '@') != NULL));
}

bool
conf_has_password(const struct conf *conf)
{
	const struct option *o;

	for (o = options; o < options + n_options; o++)
		if ((o->type == CONF_SECRET || o->type == CONF_STRING) &&
		    may_hold_password(o, *(char *const *)((const char *)conf +
		    o->offset)))
			return true;
	return false;
}

static void
print_quoted(const char *value, FILE *to)
{
	putc('"', to);
	for (; *value != '\0'; value++) {
		/* what libconfuse would read otherwise */
		if (*value == '"' || *value == '\\' || *value == '$')
			putc('\\', to);
		putc(*value, to);
	}
	putc('"', to);
}

void
conf_print(const struct conf *conf, FILE *to)
{
	const struct option *o;
	const char *value;
	char entry[1100];
	size_t i;

	for (o = options; o < options + n_options; o++) {
		fprintf(to, "%s = ", o->name);
		if (o->type == CONF_NAME)
			fprintf(to, "%s", o->names[*option_number(o, conf)]);
		else if (option_is_number(o))
			fprintf(to, "%lld",
			    (long long)*option_number(o, conf));
		else {
			value = *option_string(o, conf);
			print_quoted(may_hold_password(o, value) ? "(hidden)" :
			    value, to);
		}
		putc('\n', to);
	}
	for (i = 0; i < conf->n_hosts; i++) {
		fprintf(to, "host ");
		print_quoted(conf->hosts[i].name, to);
		fprintf(to, " { conn_cap = %lld }\n",
		    (long long)conf->hosts[i].conn_cap);
	}
	for (i = 0; i < conf->n_folder_names; i++) {
		snprintf(entry, sizeof(entry), "%s=%s",
		    conf->folder_names[i].name, conf->folder_names[i].role);
		fputs(i == 0 ? "folder_names = { " : ", ", to);
		print_quoted(entry, to);
	}
	if (conf->n_folder_names > 0)
		fputs(" }\n", to);
}
