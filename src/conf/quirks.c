/*
 * quirks.c - the table of mail servers that need something else.
 *
 * Runs in: every process; loaded once before fork.  Blocks on one file.
 *
 * Entries add up: switches by "or", limits by the smallest.
 */
#include "config.h"

#include "conf/quirks.h"

#include "base/xmem.h"
#include "conf/source.h"

#include <strings.h>

struct words {
	char **list;
	size_t n;
};

struct entry {
	struct words hosts, greeting, capability;
	struct quirks quirks;
};

struct quirks_table {
	struct entry *entries;
	size_t n, cap;
};

/* name in the file and field, for the schema, the reader and the sum */
#define SWITCHES(X)         \
	X(no_qresync)       \
	X(no_condstore)     \
	X(no_idle)          \
	X(no_namespace)     \
	X(no_list_extended) \
	X(no_mailboxid)     \
	X(id_before_select) \
	X(files_sent_copy)  \
	X(view_is_limited)

#define LIMITS(X)           \
	X(idle_secs, 1740)  \
	X(conn_cap, 100)

static cfg_t *
quirks_make_cfg(void)
{
	static cfg_opt_t server_opts[] = {
		CFG_STR_LIST("hosts", NULL, CFGF_NONE),
		CFG_STR_LIST("greeting", NULL, CFGF_NONE),
		CFG_STR_LIST("capability", NULL, CFGF_NONE),
#define X(field) CFG_BOOL(#field, cfg_false, CFGF_NONE),
		SWITCHES(X)
#undef X
#define X(field, max) CFG_INT(#field, 0, CFGF_NONE),
		LIMITS(X)
#undef X
		CFG_END() };
	static cfg_opt_t opts[] = {
		CFG_SEC("server", server_opts,
		    CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
		SOURCE_END };
	cfg_t *cfg = cfg_init(opts, CFGF_NONE);

	if (cfg == NULL)
		xmem_fail(sizeof(opts));
	return cfg;
}

static struct words
read_words(cfg_t *section, const char *name)
{
	struct words words = { .n = cfg_size(section, name) };
	size_t i;

	words.list = xcalloc(words.n + 1, sizeof(char *));
	for (i = 0; i < words.n; i++)
		words.list[i] = xstrdup(cfg_getnstr(section, name,
		    (unsigned)i));
	return words;
}

static void
read_limit(cfg_t *section, const char *name, long max, int64_t *field)
{
	*field = cfg_getint(section, name);
	if (*field < 0 || *field > max)
		cfg_error(section, "server \"%s\": %s = %ld: must be a whole "
		    "number from 0 to %ld", cfg_title(section), name,
		    (long)*field, max);
}

static bool
has_empty_word(const struct words *words)
{
	size_t i;

	for (i = 0; i < words->n; i++)
		if (words->list[i][0] == '\0')
			return true;
	return false;
}

static void
read_entry(struct quirks_table *table, cfg_t *section)
{
	struct entry *e;

	GROW(table->entries, table->n, table->cap);
	e = &table->entries[table->n++];
	memset(e, 0, sizeof(*e));
	e->quirks.name = xstrdup(cfg_title(section));
	e->hosts = read_words(section, "hosts");
	e->greeting = read_words(section, "greeting");
	e->capability = read_words(section, "capability");
#define X(field) e->quirks.field = cfg_getbool(section, #field);
	SWITCHES(X)
#undef X
#define X(field, max) read_limit(section, #field, max, &e->quirks.field);
	LIMITS(X)
#undef X
	if (e->hosts.n + e->greeting.n + e->capability.n == 0)
		cfg_error(section, "server \"%s\": hosts, greeting or "
		    "capability must say which servers it is about",
		    e->quirks.name);
	/* it would match everything */
	if (has_empty_word(&e->hosts) || has_empty_word(&e->greeting) ||
	    has_empty_word(&e->capability))
		cfg_error(section, "server \"%s\": an empty word",
		    e->quirks.name);
}

static void
on_parsed(void *arg, cfg_t *cfg)
{
	unsigned i;

	for (i = 0; i < cfg_size(cfg, "server"); i++)
		read_entry(arg, cfg_getnsec(cfg, "server", i));
}

int
quirks_load_text(struct quirks_table **table_r, const char *file,
    const char *text, size_t len, struct err *err)
{
	struct quirks_table *table = xcalloc(1, sizeof(*table));

	if (source_parse(quirks_make_cfg(), file, text, len, on_parsed, table,
		err) == -1) {
		quirks_free(&table);
		return -1;
	}
	*table_r = table;
	return 0;
}

int
quirks_load(struct quirks_table **table_r, const char *file, struct err *err)
{
	struct buf text = BUF_INIT;
	int result = 0;

	if (file[0] != '\0')
		result = source_read(file, &text, err);
	if (result == 0)
		result = quirks_load_text(table_r, file, buf_str(&text),
		    text.len, err);
	buf_release(&text);
	return result;
}

static void
free_words(struct words *words)
{
	size_t i;

	for (i = 0; i < words->n; i++)
		free(words->list[i]);
	free(words->list);
}

void
quirks_free(struct quirks_table **table)
{
	size_t i;

	if (*table == NULL)
		return;
	for (i = 0; i < (*table)->n; i++) {
		free((*table)->entries[i].quirks.name);
		free_words(&(*table)->entries[i].hosts);
		free_words(&(*table)->entries[i].greeting);
		free_words(&(*table)->entries[i].capability);
	}
	free((*table)->entries);
	free(*table);
	*table = NULL;
}

/* "mail.yahoo.com" is imap.mail.yahoo.com and itself, not fakemail.yahoo.com */
static bool
has_host(const struct words *suffixes, const char *host)
{
	size_t i, len = strlen(host), suffix_len;

	if (len > 0 && host[len - 1] == '.')
		len--;
	for (i = 0; i < suffixes->n; i++) {
		suffix_len = strlen(suffixes->list[i]);
		if (suffix_len > len ||
		    strncasecmp(host + len - suffix_len, suffixes->list[i],
			suffix_len) != 0)
			continue;
		if (suffix_len == len || host[len - suffix_len - 1] == '.')
			return true;
	}
	return false;
}

static bool
has_phrase(const struct words *phrases, const char *greeting)
{
	size_t i;

	for (i = 0; i < phrases->n; i++)
		if (strcasestr(greeting, phrases->list[i]) != NULL)
			return true;
	return false;
}

static bool
has_word(const struct words *words, const char *capabilities)
{
	size_t i, len;

	while (*capabilities != '\0') {
		capabilities += strspn(capabilities, " ");
		len = strcspn(capabilities, " ");
		for (i = 0; i < words->n; i++)
			if (len > 0 && strlen(words->list[i]) == len &&
			    strncasecmp(words->list[i], capabilities, len) ==
				0)
				return true;
		capabilities += len;
	}
	return false;
}

void
quirks_add(struct quirks *sum, const struct quirks *q)
{
	if (sum->name == NULL || sum->name[0] == '\0')
		sum->name = q->name;
#define X(field) sum->field |= q->field;
	SWITCHES(X)
#undef X
#define X(field, max)                                                  \
	if (q->field != 0 && (sum->field == 0 || q->field < sum->field)) \
		sum->field = q->field;
	LIMITS(X)
#undef X
}

void
quirks_match(const struct quirks_table *table, const char *host,
    const char *greeting, const char *capabilities, struct quirks *quirks_r)
{
	static char no_name[1];
	const struct entry *e;
	size_t i;

	*quirks_r = (struct quirks){ .name = no_name };
	for (i = 0; table != NULL && i < table->n; i++) {
		e = &table->entries[i];
		if ((host != NULL && has_host(&e->hosts, host)) ||
		    (greeting != NULL && has_phrase(&e->greeting, greeting)) ||
		    (capabilities != NULL &&
			has_word(&e->capability, capabilities)))
			quirks_add(quirks_r, &e->quirks);
	}
}
