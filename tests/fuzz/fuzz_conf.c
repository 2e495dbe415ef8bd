/*
 * fuzz_conf.c - any file as settings and as quirks.
 *
 * Settings that load can be printed, and what is printed loads again.
 */
#include "config.h"

#include "conf/options.h"
#include "conf/quirks.h"

#include "fuzz.h"

static void
print_and_load_again(const struct conf *conf)
{
	struct err err = ERR_INIT;
	struct conf *again;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (out == NULL)
		abort();
	conf_print(conf, out);
	fclose(out);
	if (conf_load_text(&again, "again", text, len, NULL, 0, &err) == -1) {
		fprintf(stderr, "%s\n%s", err.text, text);
		abort();
	}
	if (again->lease_ttl != conf->lease_ttl ||
	    again->n_hosts != conf->n_hosts ||
	    again->n_folder_names != conf->n_folder_names ||
	    strcmp(again->redis_prefix, conf->redis_prefix) != 0)
		abort();
	conf_free(&again);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct quirks_table *table;
	struct err err = ERR_INIT;
	struct quirks quirks;
	struct conf *conf;

	if (conf_load_text(&conf, "fuzz", (const char *)data, size, NULL, 0,
		&err) == 0) {
		print_and_load_again(conf);
		conf_free(&conf);
	} else if (err.kind != ERR_CONFIG)
		abort();
	if (quirks_load_text(&table, "fuzz", (const char *)data, size,
		&err) == 0) {
		quirks_match(table, "imap.example.org", "* OK ready",
		    "IMAP4rev1 IDLE", &quirks);
		quirks_free(&table);
	}
	return 0;
}
