/*
 * ingest.c - how fast the store takes messages, without servers or parsing.
 *
 * Runs under tests/with-postgres:
 *	ingest SCHEMA_DIR [MESSAGES [BATCH]]
 *
 * Synthetic messages of about 6 KB: 1.5 KB of text out of 60,000 words with a
 * Zipf-like distribution, half of them replies.  Prints messages a second and
 * the CPU time of the server's process a message; then what a hot child does:
 * a session for one message, opened and closed again.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "store/store.h"

#include <bsd/stdlib.h>
#include <inttypes.h>
#include <unistd.h>

#define WORDS 60000
#define TEXT_WORDS 220

static const char *schema_dir;
static char words[WORDS][12];
static uint64_t seed = 88172645463325252u;

static uint32_t
next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 16);
}

static void
must(int rc, const struct err *err)
{
	if (rc == -1) {
		fprintf(stderr, "%s\n", err->text);
		exit(1);
	}
}

static const char *
some_word(void)
{
	/* The product of uniform numbers favours small ones. */
	uint64_t a = next_random() % WORDS, b = next_random() % WORDS;

	return words[a * b / WORDS];
}

static void
make_words(void)
{
	size_t i, j, len;

	for (i = 0; i < WORDS; i++) {
		len = 3 + next_random() % 8;
		for (j = 0; j < len; j++)
			words[i][j] = (char)('a' + next_random() % 26);
		words[i][len] = '\0';
	}
}

static void
make_text(struct buf *text, unsigned n)
{
	buf_reset(text);
	while (n-- > 0)
		buf_addf(text, "%s ", some_word());
}

static void
add_message(struct batch *b, uint32_t i, struct buf *text, bool has_text)
{
	static struct address to[2] = {
		{ TO, "Ann Example", "ann@example.org" },
		{ CC, "Bob Example", "bob@example.net" },
	};
	static struct attachment file = { "report.pdf", "application/pdf",
		NULL, 12345, false };
	char id[64], parent[64], subject[128];
	const char *refs[1] = { parent };
	struct place place = { .uid = i + 1, .flags = { FLAG_SEEN, "" },
		.has_flags = true, .modseq = i, .has_internal_date = true,
		.internal_date_secs = 1700000000 + (int64_t)i * 60 };
	struct blob_ref blob = { .segment = 1, .offset = (int64_t)i * 6000,
		.stored = 6000, .size = 6000 };
	struct content c = { .subject = subject, .base_subject = subject,
		.from_name = "Carol Sender", .from_addr = "carol@example.com",
		.recipients = to, .n_recipients = 2, .has_sent_at = true,
		.sent_at_secs = place.internal_date_secs, .message_id = id,
		.snippet = "The beginning of the text, as people see it" };

	snprintf(id, sizeof(id), "%08x.%u@mail.example.com",
	    next_random(), i);
	snprintf(subject, sizeof(subject), "%s %s %s %u", some_word(),
	    some_word(), some_word(), i / 2);
	snprintf(parent, sizeof(parent), "thread-%u@mail.example.com",
	    next_random() % (i + 1));
	if (i % 2 == 1) {
		c.references = refs;
		c.n_references = 1;
		c.in_reply_to = parent;
	}
	if (i % 8 == 0) {
		c.attachments = &file;
		c.n_attachments = 1;
		c.has_attachments = true;
	}
	memcpy(blob.digest, &i, sizeof(i));
	arc4random_buf(blob.digest + 4, DIGEST_SIZE - 4);
	if (has_text) {
		make_text(text, TEXT_WORDS);
		c.text = buf_str(text);
		c.text_len = text->len;
	}
	batch_add(b, &place, &blob, &c);
}

/* CPU time of a process, or with `is_parent` of the children it has reaped. */
static int64_t
ticks_of(int pid, bool is_parent, int *parent_r)
{
	char path[64], line[1024];
	const char *p;
	unsigned long user = 0, system = 0, c_user = 0, c_system = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (f == NULL || fgets(line, sizeof(line), f) == NULL)
		return 0;
	fclose(f);
	p = strrchr(line, ')');
	sscanf(p + 2, "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
	    "%lu %lu %lu %lu", parent_r, &user, &system, &c_user, &c_system);
	return (int64_t)(is_parent ? c_user + c_system : user + system);
}

static const char *
one_value(struct store *s, struct arena *arena, const char *sql)
{
	struct store_rows *rows;
	struct err err = ERR_INIT;

	must(store_query(s, arena, sql, NULL, 0, &rows, &err), &err);
	return rows->n_rows > 0 ? rows->cells[0] : "";
}

/* An account with one folder; its fence, and a session of its owner. */
static struct store *
make_account(const char *db, struct arena *arena, struct fence *fence,
    struct folder **folder_r)
{
	struct err err = ERR_INIT;
	struct account a = { .email = "ann@example.org",
		.imap_host = "imap.example.org", .imap_login = "ann",
		.imap_port = 993, .imap_tls = TLS_IMPLICIT };
	struct folder_op op = { .kind = FOLDER_CREATE, .wire = "INBOX",
		.path = "INBOX", .delimiter = '/', .role = ROLE_INBOX,
		.is_selectable = true };
	char email[64], name[STORE_NAME_SIZE];
	struct account *account;
	struct store *s;
	struct uuid job;
	size_t n;
	int version;

	must(store_open(&s, db, "bench", &err), &err);
	must(store_migrate(s, schema_dir, NULL, NULL, &version, &err), &err);
	snprintf(email, sizeof(email), "u%x@example.org", next_random());
	must(store_user_add(s, email, "", 0, &a.user_id, &err), &err);
	uuid_generate(&a.id);
	must(store_account_add(s, &a, &job, &err), &err);
	must(store_account_take_over(s, &a.id, "bench", arena, &account,
	    &err), &err);
	store_close(&s);
	fence_init(fence, &a.id, account->epoch, "bench");
	must(store_open(&s, db, store_session_name(name, &a.id,
	    fence->epoch), &err), &err);
	must(store_folders_write(s, fence, &op, 1, &err), &err);
	must(store_folders_load(s, &a.id, arena, folder_r, &n, &err), &err);
	return s;
}

static void
run(const char *db, uint32_t messages, uint32_t batch, bool has_text)
{
	struct arena *arena = arena_new("bench");
	struct err err = ERR_INIT;
	struct buf text = BUF_INIT;
	struct commit_result result;
	struct folder *folder;
	struct fence fence;
	struct store *s;
	struct batch *b[2];
	uint32_t i, which = 0;
	int64_t start, msecs, ticks, client;
	int pid, parent;

	s = make_account(db, arena, &fence, &folder);
	pid = (int)strtol(one_value(s, arena, "SELECT pg_backend_pid()"),
	    NULL, 10);
	b[0] = batch_new();
	b[1] = batch_new();
	start = clock_mono_msecs();
	client = clock();
	ticks = ticks_of(pid, false, &parent);
	for (i = 0; i < messages; i++) {
		add_message(b[which], i, &text, has_text);
		if (batch_count(b[which]) < batch && i + 1 < messages)
			continue;
		must(store_commit_wait(s, arena, &result, &err), &err);
		must(store_commit_start(s, &fence, folder, b[which],
		    &(struct cursor){ .uidvalidity = 1, .uidnext = i + 2 },
		    &err), &err);
		which ^= 1;
		batch_reset(b[which]);
	}
	must(store_commit_wait(s, arena, &result, &err), &err);
	msecs = clock_mono_msecs() - start;
	ticks = ticks_of(pid, false, &parent) - ticks;
	client = clock() - client;
	printf("%s batch=%u messages=%u msgs_per_s=%.0f "
	    "backend_us=%.1f client_us=%.1f stored=%s\n",
	    has_text ? "text" : "no-text", batch, messages,
	    messages * 1000.0 / (double)msecs,
	    (double)ticks * 1e6 / (double)sysconf(_SC_CLK_TCK) / messages,
	    (double)client * 1e6 / CLOCKS_PER_SEC / messages,
	    one_value(s, arena, "SELECT sum(messages) FROM mailbox"));
	batch_free(&b[0]);
	batch_free(&b[1]);
	buf_release(&text);
	store_close(&s);
	arena_free(&arena);
}

static int
compare(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int64_t
mono_usecs(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Replies that name no parent, all of one subject, each from somebody else. */
static void
run_strays(const char *db, uint32_t messages, uint32_t batch)
{
	struct arena *arena = arena_new("bench");
	struct batch *b = batch_new();
	struct err err = ERR_INIT;
	struct commit_result result;
	struct folder *folder;
	struct fence fence;
	struct store *s = make_account(db, arena, &fence, &folder);
	int pid = (int)strtol(one_value(s, arena, "SELECT pg_backend_pid()"),
	    NULL, 10);
	int parent;
	int64_t ticks = ticks_of(pid, false, &parent);
	uint32_t i;

	for (i = 0; i < messages; i++) {
		char from[64], id[64];
		struct address to = { TO, "", "news@example.org" };
		struct place place = { .uid = i + 1 };
		struct content c = { .subject = "Re: News",
			.base_subject = "News", .is_reply = true,
			.from_addr = from, .message_id = id,
			.recipients = &to, .n_recipients = 1, .snippet = "" };

		snprintf(from, sizeof(from), "s%u@example.net", i);
		snprintf(id, sizeof(id), "%u@example.net", i);
		batch_add(b, &place, NULL, &c);
		if (batch_count(b) < batch && i + 1 < messages)
			continue;
		must(store_commit_start(s, &fence, folder, b,
		    &(struct cursor){ .uidvalidity = 1, .uidnext = i + 2 },
		    &err), &err);
		must(store_commit_wait(s, arena, &result, &err), &err);
		batch_reset(b);
	}
	ticks = ticks_of(pid, false, &parent) - ticks;
	printf("strays of one subject batch=%u messages=%u backend_us=%.1f "
	    "threads=%s\n", batch, messages, (double)ticks * 1e6 /
	    (double)sysconf(_SC_CLK_TCK) / messages, one_value(s, arena,
	    "SELECT count(*) FROM threads WHERE subject = 'News'"));
	store_close(&s);
	batch_free(&b);
	arena_free(&arena);
}

#define HOT_ROUNDS 200

static void
run_hot(const char *db)
{
	struct arena *arena = arena_new("bench");
	struct batch *b = batch_new();
	struct buf text = BUF_INIT;
	struct err err = ERR_INIT;
	struct commit_result result;
	struct folder *folder;
	struct fence fence;
	struct store *s;
	int64_t open[HOT_ROUNDS], all[HOT_ROUNDS], start, ticks;
	int parent = 0, grandparent;
	uint32_t i;

	s = make_account(db, arena, &fence, &folder);
	ticks_of((int)strtol(one_value(s, arena, "SELECT pg_backend_pid()"),
	    NULL, 10), false, &parent);
	ticks = ticks_of(parent, true, &grandparent);
	for (i = 0; i < HOT_ROUNDS; i++) {
		store_close(&s);
		batch_reset(b);
		add_message(b, i, &text, true);
		start = mono_usecs();
		must(store_open(&s, db, "bench", &err), &err);
		open[i] = mono_usecs() - start;
		must(store_commit_start(s, &fence, folder, b,
		    &(struct cursor){ .uidvalidity = 1, .uidnext = i + 2 },
		    &err), &err);
		must(store_commit_wait(s, arena, &result, &err), &err);
		all[i] = mono_usecs() - start;
	}
	qsort(open, HOT_ROUNDS, sizeof(*open), compare);
	qsort(all, HOT_ROUNDS, sizeof(*all), compare);
	ticks = ticks_of(parent, true, &grandparent) - ticks;
	printf("one-message sessions=%d backend_us=%.0f open_us_p50=%" PRId64
	    " open_and_commit_us_p50=%" PRId64 " p99=%" PRId64 "\n",
	    HOT_ROUNDS, (double)ticks * 1e6 / (double)sysconf(_SC_CLK_TCK) /
	    HOT_ROUNDS, open[HOT_ROUNDS / 2], all[HOT_ROUNDS / 2],
	    all[HOT_ROUNDS * 99 / 100]);
	store_close(&s);
	batch_free(&b);
	buf_release(&text);
	arena_free(&arena);
}

int
main(int argc, char **argv)
{
	const char *db = getenv("MAILHERD_TEST_DB");
	uint32_t messages = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) :
	    20000;
	uint32_t batch = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 200;

	if (db == NULL || argc < 2 || messages == 0 || batch == 0) {
		fprintf(stderr, "usage: with-postgres ingest SCHEMA_DIR "
		    "[MESSAGES [BATCH]]\n");
		return 64;
	}
	schema_dir = argv[1];
	make_words();
	run(db, messages, batch, false);
	run(db, messages, batch, true);
	run_strays(db, 2000, batch);
	run_hot(db);
	return 0;
}
