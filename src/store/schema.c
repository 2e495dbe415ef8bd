/*
 * schema.c - the numbered files of etc/schema, applied in order.
 *
 * Runs in: mailherdctl; the check also in clerk, hot, pool and job children.
 * Blocks.
 *
 * Each file is one transaction together with the row that says so; an
 * advisory lock lets two run at once.  A released file never changes: a new
 * one is added.
 */
#include "store/session.h"

#include "base/xmem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Any number that is only ours. */
#define SCHEMA_LOCK "7305796174839106"
#define FILE_MAX ((size_t)4 << 20)

struct step {
	int version;
	char *name;
};
struct steps {
	struct step *items;
	size_t n, cap;
};

static void
steps_release(struct steps *steps)
{
	size_t i;

	for (i = 0; i < steps->n; i++)
		free(steps->items[i].name);
	free(steps->items);
}

/* "012_name.sql" -> 12; 0: not one of ours. */
static int
version_of(const char *name)
{
	size_t len = strlen(name);
	int i, version = 0;

	if (len < 8 || name[3] != '_' || strcmp(name + len - 4, ".sql") != 0)
		return 0;
	for (i = 0; i < 3; i++) {
		if (name[i] < '0' || name[i] > '9')
			return 0;
		version = version * 10 + (name[i] - '0');
	}
	return version;
}

static int
compare_steps(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	return (x->version > y->version) - (x->version < y->version);
}

/* Sorted; 1, 2, 3 ... without gap or double. */
static int
steps_load(struct steps *steps, const char *dir, struct err *err)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t i;

	*steps = (struct steps){ 0 };
	if (d == NULL)
		return err_set(err, ERR_CONFIG, "schema directory %s: %s", dir,
		    strerror(errno));
	while ((e = readdir(d)) != NULL) {
		int version = version_of(e->d_name);

		if (version == 0)
			continue;
		GROW(steps->items, steps->n, steps->cap);
		steps->items[steps->n++] = (struct step){ version,
			xstrdup(e->d_name) };
	}
	closedir(d);
	if (steps->n == 0)
		return err_set(err, ERR_CONFIG, "no schema files in %s", dir);
	qsort(steps->items, steps->n, sizeof(*steps->items), compare_steps);
	for (i = 0; i < steps->n; i++)
		if (steps->items[i].version != (int)i + 1)
			return err_set(err, ERR_CONFIG,
			    "%s: file %03d is missing or there twice", dir,
			    (int)i + 1);
	return 0;
}

int
store_schema_wanted(const char *schema_dir, int *version_r, struct err *err)
{
	struct steps steps;
	int rc = steps_load(&steps, schema_dir, err);

	if (rc == 0)
		*version_r = (int)steps.n;
	steps_release(&steps);
	return rc;
}

int
store_schema_version(struct store *s, int *version_r, struct err *err)
{
	PGresult *res;
	bool exists;

	if (session_run(s, "SELECT to_regclass('mailherd.schema_version') "
	    "IS NOT NULL", NULL, &res, err) == -1)
		return -1;
	exists = result_bool(res, 0, 0);
	PQclear(res);
	*version_r = 0;
	if (!exists)
		return 0;
	if (session_run(s, "SELECT coalesce(max(version), 0) "
	    "FROM mailherd.schema_version", NULL, &res, err) == -1)
		return -1;
	*version_r = (int)result_int8(res, 0, 0);
	PQclear(res);
	return 0;
}

/* --- can we work with it? ------------------------------------------------------ */

static int
refuse_version(int have, int oldest, struct err *err)
{
	if (have == 0)
		return err_set(err, ERR_CONFIG, "the database has no mailherd "
		    "schema (run: mailherdctl init)");
	if (have < STORE_SCHEMA)
		return err_set(err, ERR_CONFIG, "the database is at schema "
		    "%d, this program needs %d (run: mailherdctl migrate)",
		    have, STORE_SCHEMA);
	return err_set(err, ERR_CONFIG, "the database is at schema %d, which "
	    "needs programs of schema %d or newer, this one is of schema %d "
	    "(upgrade mailherd on this host)", have, oldest, STORE_SCHEMA);
}

/* There is no such table, schema or column. */
static bool
is_unknown_name(const char *sqlstate)
{
	static const char *const states[] = { "42P01", "3F000", "42703" };
	size_t i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(sqlstate, states[i]) == 0)
			return true;
	return false;
}

int
store_check(struct store *s, struct err *err)
{
	struct err failure = ERR_INIT;
	int have = 0, oldest = 0;
	PGresult *res;

	if (session_run(s, "SELECT v.version, v.works_with, b.id FROM "
	    "mailherd.schema_version v, mailherd.blob_store b "
	    "ORDER BY v.version DESC LIMIT 1", NULL, &res, &failure) == -1) {
		if (is_unknown_name(s->sqlstate))
			return refuse_version(0, 0, err);
		*err = failure;
		return -1;
	}
	if (PQntuples(res) > 0) {
		have = (int)result_int8(res, 0, 0);
		oldest = (int)result_int8(res, 0, 1);
		result_uuid(res, 0, 2, &s->blob_id);
	}
	PQclear(res);
	if (have < STORE_SCHEMA || oldest > STORE_SCHEMA)
		return refuse_version(have, oldest, err);
	return 0;
}

const struct uuid *
store_blob_id(const struct store *s)
{
	return &s->blob_id;
}

/* --- applying ------------------------------------------------------------------- */

static int
schema_read_file(
    struct buf *out, const char *dir, const char *name, struct err *err)
{
	struct buf path = BUF_INIT;
	size_t start = out->len;
	ssize_t n = -1;
	int fd;

	buf_addf(&path, "%s/%s", dir, name);
	fd = open(buf_str(&path), O_RDONLY | O_CLOEXEC);
	while (fd != -1 && out->len - start < FILE_MAX) {
		n = read(fd, buf_reserve(out, 65536), 65536);
		if (n <= 0)
			break;
		out->len += (size_t)n;
		out->data[out->len] = '\0';
	}
	if (n != 0)
		err_set(err, ERR_CONFIG, "%s: %s", buf_str(&path),
		    n > 0 ? "too large" : strerror(errno));
	if (fd != -1)
		close(fd);
	buf_release(&path);
	return n == 0 ? 0 : -1;
}

/* Many statements at once: the simple protocol, all results looked at. */
static int
run_script(struct store *s, const char *sql, struct err *err)
{
	PGresult *res;
	int rc = 0;

	if (PQsendQuery(s->conn, sql) == 0)
		return session_fail(s, "not sent", err);
	for (;;) {
		if (session_result(s, &res, err) == -1)
			return -1;
		if (res == NULL)
			return rc;
		if (rc == 0 && PQresultStatus(res) != PGRES_COMMAND_OK &&
		    PQresultStatus(res) != PGRES_TUPLES_OK)
			rc = session_fail(s, "PostgreSQL", err);
		PQclear(res);
	}
}

/* The oldest programs that the file lets go on; see store_migrate. */
static int
works_with(const char *sql, int version)
{
	static const char words[] = "\n-- works with: ";
	const char *line = strstr(sql, words);
	int n = line != NULL ? (int)strtol(line + strlen(words), NULL, 10) : 0;

	return n > 0 && n < version ? n : version;
}

static int
apply_step(struct store *s, const char *dir, const struct step *step,
    struct err *err)
{
	struct buf sql = BUF_INIT;
	int rc;

	buf_adds(&sql, "BEGIN;\nSET LOCAL statement_timeout = 0;\n"
	    "SET LOCAL search_path = mailherd;\n");
	rc = schema_read_file(&sql, dir, step->name, err);
	buf_addf(&sql, "\n;INSERT INTO mailherd.schema_version "
	    "(version, name, works_with) VALUES (%d, '%s', %d);\nCOMMIT;\n",
	    step->version, step->name,
	    works_with(buf_str(&sql), step->version));
	if (rc == 0) {
		rc = run_script(s, buf_str(&sql), err);
		if (rc == -1) {
			struct err ignored = ERR_INIT;

			err_prefix(err, "%s", step->name);
			run_script(s, "ROLLBACK", &ignored);
		}
	}
	buf_release(&sql);
	return rc;
}

static int
check_server(struct store *s, struct err *err)
{
	const char *encoding = PQparameterStatus(s->conn, "server_encoding");

	if (PQserverVersion(s->conn) < 140000)
		return err_set(err, ERR_CONFIG, "PostgreSQL is too old: "
		    "version 14 or newer is needed");
	if (encoding == NULL || strcmp(encoding, "UTF8") != 0)
		return err_set(err, ERR_CONFIG, "the database's encoding is "
		    "%s; create it with ENCODING 'UTF8' TEMPLATE template0",
		    encoding != NULL ? encoding : "unknown");
	return 0;
}

static int
migrate_locked(struct store *s, const char *dir, const struct steps *steps,
    void (*on_step)(void *arg, const char *file), void *arg, int *version_r,
    struct err *err)
{
	int version, i;

	if (run_script(s, "CREATE SCHEMA IF NOT EXISTS mailherd;"
	    "CREATE TABLE IF NOT EXISTS mailherd.schema_version ("
	    "version integer PRIMARY KEY, name text NOT NULL, "
	    "works_with integer NOT NULL, "
	    "applied_at timestamptz NOT NULL DEFAULT now())", err) == -1 ||
	    store_schema_version(s, &version, err) == -1)
		return -1;
	if (version > (int)steps->n)
		return err_set(err, ERR_CONFIG, "the database has schema %d, "
		    "this mailherd knows %d: it was made by a newer version; "
		    "nothing was changed", version, (int)steps->n);
	for (i = version; i < (int)steps->n; i++) {
		if (on_step != NULL)
			on_step(arg, steps->items[i].name);
		if (apply_step(s, dir, &steps->items[i], err) == -1)
			return -1;
	}
	*version_r = (int)steps->n;
	return 0;
}

int
store_migrate(struct store *s, const char *schema_dir,
    void (*on_step)(void *arg, const char *file), void *arg, int *version_r,
    struct err *err)
{
	struct err ignored = ERR_INIT;
	struct steps steps;
	int rc;

	rc = steps_load(&steps, schema_dir, err);
	if (rc == 0)
		rc = check_server(s, err);
	if (rc == 0)
		rc = session_run(s, "SELECT pg_advisory_lock(" SCHEMA_LOCK ")",
		    NULL, NULL, err);
	if (rc == 0) {
		rc = migrate_locked(s, schema_dir, &steps, on_step, arg,
		    version_r, err);
		session_run(s, "SELECT pg_advisory_unlock(" SCHEMA_LOCK ")",
		    NULL, NULL, &ignored);
	}
	steps_release(&steps);
	return rc;
}
