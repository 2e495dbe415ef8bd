/*
 * store_world.c - an account with folders and mail in a real PostgreSQL.
 */
#include "store_world.h"

#include "base/buf.h"

#include <check.h>
#include <sodium.h>
#include <stdarg.h>

const char *
world_db(void)
{
	const char *db = getenv("MAILHERD_TEST_DB");

	if (db == NULL) {
		fprintf(stderr, "run under tests/with-postgres\n");
		exit(99);
	}
	return db;
}

void
world_open(struct world *w)
{
	struct account a = { .imap_host = "imap.example.org",
		.imap_login = "login", .imap_port = 993,
		.imap_tls = TLS_IMPLICIT, .secret = (const uint8_t *)"seal",
		.secret_len = 4 };
	struct account *account;
	char id[UUID_TEXT_SIZE];

	memset(w, 0, sizeof(*w));
	w->arena = arena_new("test");
	w->batch = batch_new();
	must(store_open(&w->s, world_db(), "test", &w->err), w);
	uuid_generate(&a.id);
	w->account_id = a.id;
	w->email = arena_printf(w->arena, "%s@example.org",
	    uuid_format(&a.id, id));
	must(store_user_add(w->s, w->email, "Ann", 0, &w->user_id, &w->err),
	    w);
	a.user_id = w->user_id;
	a.email = w->email;
	must(store_account_add(w->s, &a, &w->job_id, &w->err), w);
	must(store_account_take_over(w->s, &a.id, "test", w->arena, &account,
	    &w->err), w);
	fence_init(&w->fence, &a.id, account->epoch, "test");
	store_close(&w->s);
	w->s = world_session(w);
}

void
world_close(struct world *w)
{
	store_close(&w->s);
	batch_free(&w->batch);
	arena_free(&w->arena);
}

struct store *
world_session(struct world *w)
{
	char name[STORE_NAME_SIZE];
	struct store *s;

	must(store_open(&s, world_db(), store_session_name(name,
	    &w->account_id, w->fence.epoch), &w->err), w);
	return s;
}

struct folder *
world_folder(struct world *w, const char *name)
{
	struct folder_op op = { .kind = FOLDER_CREATE, .wire = name,
		.path = name, .delimiter = '/', .is_selectable = true };

	must(store_folders_write(w->s, &w->fence, &op, 1,
	    &w->refused, &w->err), w);
	return world_reload(w, op.id);
}

struct folder *
world_reload(struct world *w, int64_t id)
{
	struct folder *folders;
	size_t i, n;

	must(store_folders_load(w->s, &w->account_id, w->arena, &folders, &n,
	    &w->err), w);
	for (i = 0; i < n; i++)
		if (folders[i].id == id)
			return &folders[i];
	return NULL;
}

/* Two mails have the same bytes only if they say so, in one account. */
struct blob_ref
mail_blob(struct world *w, const struct mail *m)
{
	struct blob_ref blob = { .segment = 7, .offset = m->uid,
		.stored = 100, .size = 100 };
	char bytes[64];

	snprintf(bytes, sizeof(bytes), "%s",
	    m->bytes != NULL ? m->bytes : m->id != NULL ? m->id : "");
	if (*bytes == '\0')
		snprintf(bytes, sizeof(bytes), "uid %u", m->uid);
	crypto_generichash(blob.digest, DIGEST_SIZE,
	    (const unsigned char *)bytes, strlen(bytes),
	    w->account_id.bytes, sizeof(w->account_id.bytes));
	return blob;
}

struct place
mail_place(const struct mail *m)
{
	return (struct place){ .uid = m->uid, .has_flags = true,
		.flags = { m->flags, m->keywords != NULL ? m->keywords : "" },
		.modseq = 1, .size = 100, .has_internal_date = true,
		.internal_date_secs = 1750000000 + m->date * 86400,
		.message_id = m->id };
}

static void
split_refs(struct world *w, const char *refs, struct content *c)
{
	size_t n = 1;
	const char *p;
	char *copy, *next;

	if (refs == NULL)
		return;
	for (p = refs; *p != '\0'; p++)
		n += *p == ' ';
	c->references = ARENA_ARRAY(w->arena, const char *, n);
	copy = arena_strdup(w->arena, refs);
	while ((next = strsep(&copy, " ")) != NULL)
		if (*next != '\0')
			c->references[c->n_references++] = next;
}

void
world_add(struct world *w, const struct mail *m)
{
	struct place place = mail_place(m);
	struct blob_ref blob = mail_blob(w, m);
	struct address to = { TO, "", m->to != NULL ? m->to : w->email };
	struct content c = { .subject = m->subject, .base_subject = m->subject,
		.is_reply = m->is_reply, .from_name = "Somebody",
		.from_addr = m->from != NULL ? m->from : "bob@example.net",
		.recipients = &to, .n_recipients = 1, .has_sent_at = true,
		.sent_at_secs = place.internal_date_secs,
		.message_id = m->id, .in_reply_to = m->reply,
		.text = m->text, .text_len = m->text ? strlen(m->text) : 0,
		.snippet = "" };

	split_refs(w, m->refs, &c);
	batch_add(w->batch, &place, &blob, &c);
}

int
world_try_commit(struct world *w, struct folder *f, uint32_t uidnext)
{
	struct cursor cursor = f->cursor;
	int rc;

	cursor.uidvalidity = cursor.uidvalidity ? cursor.uidvalidity : 1;
	cursor.uidnext = uidnext;
	rc = store_commit_start(w->s, &w->fence, f, w->batch, &cursor,
	    &w->err);
	batch_reset(w->batch);
	if (rc == 0)
		rc = store_commit_wait(w->s, w->arena, &w->result, &w->err);
	return rc;
}

void
world_commit(struct world *w, struct folder *f)
{
	must(world_try_commit(w, f, f->cursor.uidnext + 1), w);
}

int64_t
world_deliver(struct world *w, struct folder *f, const struct mail *m)
{
	world_add(w, m);
	world_commit(w, f);
	return w->result.created.n == 1 ? w->result.created.ids[0] : 0;
}

void
world_apply(struct world *w, struct folder *f, const struct mail *flags,
    size_t n_flags, const uint32_t *gone, size_t n_gone)
{
	struct place *places = ARENA_ARRAY(w->arena, struct place, n_flags);
	size_t i;

	for (i = 0; i < n_flags; i++) {
		places[i] = mail_place(&flags[i]);
		places[i].modseq = f->cursor.highestmodseq + 2;
	}
	must(store_apply(w->s, &w->fence, f, places, n_flags, gone, n_gone,
	    NULL, w->arena, &w->result, &w->err), w);
}

void
world_remap(struct world *w, struct folder *f)
{
	struct cursor cursor = { .uidvalidity = 8, .uidnext = 9 };
	bool has_more = true;

	must(store_folder_remap(w->s, &w->fence, f, &w->err), w);
	while (has_more)
		must(store_folder_void(w->s, &w->fence, f, &has_more,
		    &w->err), w);
	must(store_apply(w->s, &w->fence, f, NULL, 0, NULL, 0, &cursor,
	    w->arena, &w->result, &w->err), w);
}

void
world_empty(struct world *w, struct folder *f)
{
	bool has_more = true;

	while (has_more)
		must(store_folder_empty(w->s, &w->fence, f->id, w->arena,
		    &w->result, &has_more, &w->err), w);
}

static const char *
query(struct world *w, const char *fmt, va_list ap)
{
	struct store_rows *rows;
	char sql[2000];

	vsnprintf(sql, sizeof(sql), fmt, ap);
	must(store_query(w->s, w->arena, sql, NULL, 0, &rows, &w->err), w);
	if (rows->n_rows == 0 || rows->n_columns == 0 ||
	    rows->cells[0] == NULL)
		return "NULL";
	return rows->cells[0];
}

int64_t
world_int(struct world *w, const char *fmt, ...)
{
	const char *value;
	va_list ap;

	va_start(ap, fmt);
	value = query(w, fmt, ap);
	va_end(ap);
	return strtoll(value, NULL, 10);
}

const char *
world_text(struct world *w, const char *fmt, ...)
{
	const char *value;
	va_list ap;

	va_start(ap, fmt);
	value = query(w, fmt, ap);
	va_end(ap);
	return value;
}

const char *
world_account(struct world *w)
{
	char id[UUID_TEXT_SIZE];

	return arena_printf(w->arena, "'%s'::uuid",
	    uuid_format(&w->account_id, id));
}

int64_t
world_thread(struct world *w, int64_t message_id)
{
	return world_int(w, "SELECT thread_id FROM messages WHERE id = %lld",
	    (long long)message_id);
}

/* --- the program --------------------------------------------------------- */

int
world_run(Suite *suite)
{
	struct err err = ERR_INIT;
	struct store *s;
	SRunner *runner;
	int version, failed;

	if (store_open(&s, world_db(), "test", &err) == -1 ||
	    store_migrate(s, SCHEMA_DIR, NULL, NULL, &version, &err) == -1) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	store_close(&s);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
