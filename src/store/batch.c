/*
 * batch.c - a batch of new messages as columns for ingest().
 *
 * Runs in: hot, pool and job children.  Never blocks.
 *
 * Everything is marshalled when it is added, straight into the arrays that go
 * to the server, so the content can be forgotten at once; only what depends
 * on the whole batch (blobs, components) is done when it is sent.
 */
#include "store/batch.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "store/thread.h"
#include "mail/tsvector.h"

/* Names beyond these are not searched for, nor kept as JSON. */
#define SEARCH_RECIPIENTS 200
#define SEARCH_ATTACHMENTS 100
#define RECIPIENTS_BYTES 65536
#define REFS_BYTES 65536
/* Of more references only the first and the last count for the thread: each is
 * a row (thread_ref), and a header has room for ten thousand. */
#define REFS_FIRST 20
#define REFS_LAST 80
/* Of a message's people, and of a thread's (people_join()). */
#define PEOPLE_MAX 32
#define ATTACHMENTS_MAX 1000
/* A mail cannot have come from further in the future. */
#define FUTURE_SECS 86400

/* The array parameters of ingest(), in its order. */
#define BATCH_COLUMNS(X)              \
	X(C_AUTHORS, PG_TEXT)         \
	X(C_PEOPLE, PG_TEXT)          \
	X(M_UID, PG_INT8)             \
	X(M_FLAGS, PG_INT4)           \
	X(M_KEYWORDS, PG_TEXT)        \
	X(M_MODSEQ, PG_INT8)          \
	X(M_SIZE, PG_INT8)            \
	X(M_INTERNAL, PG_TIMESTAMPTZ) \
	X(M_SENT, PG_TIMESTAMPTZ)     \
	X(M_MID, PG_INT8)             \
	X(M_MESSAGE_ID, PG_TEXT)      \
	X(M_IN_REPLY_TO, PG_TEXT)     \
	X(M_REFS, PG_TEXT)            \
	X(M_SUBJECT, PG_TEXT)         \
	X(M_FROM_ADDR, PG_TEXT)       \
	X(M_FROM_NAME, PG_TEXT)       \
	X(M_RECIPIENTS, PG_JSONB)     \
	X(M_SNIPPET, PG_TEXT)         \
	X(M_HAS_ATTACHMENTS, PG_BOOL) \
	X(M_PARSE_STATE, PG_INT2)     \
	X(M_PARSE_REASON, PG_TEXT)    \
	X(M_BLOB, PG_INT4)            \
	X(M_COMP, PG_INT4)            \
	X(M_START, PG_INT2)           \
	X(M_AGE, PG_INT8)             \
	X(M_SUBJECT_KEY, PG_INT8)     \
	X(M_BASE_SUBJECT, PG_TEXT)    \
	X(M_TSV, PG_TSVECTOR)         \
	X(B_DIGEST, PG_BYTEA)         \
	X(B_SEGMENT, PG_INT4)         \
	X(B_OFFSET, PG_INT8)          \
	X(B_CODEC, PG_INT2)           \
	X(B_STORED, PG_INT8)          \
	X(B_SIZE, PG_INT8)            \
	X(B_COPIES, PG_INT4)          \
	X(R_MID, PG_INT8)             \
	X(R_COMP, PG_INT4)            \
	X(A_ROW, PG_INT4)             \
	X(A_ORDINAL, PG_INT4)         \
	X(A_SIZE, PG_INT8)            \
	X(A_INLINE, PG_BOOL)          \
	X(A_TYPE, PG_TEXT)            \
	X(A_FILENAME, PG_TEXT)        \
	X(A_CID, PG_TEXT)

enum batch_column {
#define X(symbol, type) symbol,
	BATCH_COLUMNS(X)
#undef X
	    COLUMN_COUNT
};

static const enum pg_type column_types[] = {
#define X(symbol, type) [symbol] = type,
	BATCH_COLUMNS(X)
#undef X
};

const int batch_n_params = 1 + COLUMN_COUNT;

/* m_start of ingest() */
enum { START_NONE = 0, START_FIRST = 1, START_STRAY = 2 };

struct entry {
	uint32_t uid;
	bool has_blob;
	struct blob_ref blob;
	bool has_subject;
	int64_t subject; /* hash */
};

/* Somebody a message is from or was sent to. */
struct person {
	uint32_t message;
	int32_t key;
	bool is_author;
};

struct batch {
	struct column columns[COLUMN_COUNT];
	struct entry *entries;
	size_t n, cap;
	struct person *people;
	size_t n_people, cap_people;
	struct components components;
	struct buf scratch;
};

struct batch *
batch_new(void)
{
	struct batch *b = xcalloc(1, sizeof(*b));
	size_t i;

	for (i = 0; i < COLUMN_COUNT; i++)
		column_init(&b->columns[i], column_types[i]);
	components_init(&b->components);
	return b;
}

void
batch_free(struct batch **b)
{
	size_t i;

	if (*b == NULL)
		return;
	for (i = 0; i < COLUMN_COUNT; i++)
		column_release(&(*b)->columns[i]);
	components_release(&(*b)->components);
	buf_release(&(*b)->scratch);
	free((*b)->people);
	free((*b)->entries);
	free(*b);
	*b = NULL;
}

void
batch_reset(struct batch *b)
{
	size_t i;

	for (i = 0; i < COLUMN_COUNT; i++)
		column_reset(&b->columns[i]);
	components_reset(&b->components);
	b->n = b->n_people = 0;
}

size_t
batch_count(const struct batch *b)
{
	return b->n;
}

size_t
batch_bytes(const struct batch *b)
{
	size_t i, bytes = 0;

	for (i = 0; i < COLUMN_COUNT; i++)
		bytes += b->columns[i].bytes.len;
	return bytes;
}

/* --- JSON ---------------------------------------------------------------------- */

static void
add_json_string(struct buf *out, const char *s)
{
	const char *p;

	buf_addc(out, '"');
	for (p = s; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\')
			buf_addc(out, '\\');
		if ((unsigned char)*p < 0x20)
			buf_addf(out, "\\u%04x", (unsigned)*p);
		else
			buf_addc(out, *p);
	}
	buf_addc(out, '"');
}

/* ,"to":[{"name":"","addr":""}]; nothing when there is none of the kind. */
static void
add_addresses(struct buf *out, const char *key, char kind,
    const struct address *list, size_t n)
{
	size_t i, found = 0;

	for (i = 0; i < n && out->len < RECIPIENTS_BYTES; i++) {
		if (kind != 0 && list[i].kind != kind)
			continue;
		if (found++ == 0)
			buf_addf(out, "%s\"%s\":[", out->data[out->len - 1] ==
			    '{' ? "" : ",", key);
		else
			buf_addc(out, ',');
		buf_adds(out, "{\"name\":");
		add_json_string(out, list[i].name);
		buf_adds(out, ",\"addr\":");
		add_json_string(out, list[i].addr);
		buf_addc(out, '}');
	}
	if (found > 0)
		buf_addc(out, ']');
}

static void
add_recipients(struct batch *b, const struct content *c)
{
	struct buf *json = &b->scratch;

	buf_reset(json);
	buf_addc(json, 1); /* version of jsonb's binary form */
	buf_addc(json, '{');
	add_addresses(json, "to", TO, c->recipients, c->n_recipients);
	add_addresses(json, "cc", CC, c->recipients, c->n_recipients);
	add_addresses(json, "bcc", BCC, c->recipients, c->n_recipients);
	add_addresses(json, "reply_to", REPLY_TO, c->recipients,
	    c->n_recipients);
	/* The first sender has columns of its own. */
	if (c->n_senders > 1)
		add_addresses(json, "from", 0, c->senders, c->n_senders);
	buf_addc(json, '}');
	column_utf8(&b->columns[M_RECIPIENTS], json->data, json->len);
}

/* --- the parts of a message --------------------------------------------------------- */

static void
add_input(struct tsv_input *inputs, size_t *n, const char *text, size_t len,
    char weight)
{
	if (text != NULL && len > 0)
		inputs[(*n)++] = (struct tsv_input){ text, len, weight };
}

static void
add_input_str(struct tsv_input *inputs, size_t *n, const char *text,
    char weight)
{
	add_input(inputs, n, text, text != NULL ? strlen(text) : 0, weight);
}

/* Weights: A subject, B people, C file names, D text. */
static void
add_search(struct batch *b, const struct content *c)
{
	struct tsv_input inputs[5 + 2 * SEARCH_RECIPIENTS +
	    SEARCH_ATTACHMENTS];
	struct column *column = &b->columns[M_TSV];
	size_t i, mark, n = 0;

	add_input_str(inputs, &n, c->subject, 'A');
	add_input_str(inputs, &n, c->from_name, 'B');
	add_input_str(inputs, &n, c->from_addr, 'B');
	for (i = 0; i < c->n_recipients && i < SEARCH_RECIPIENTS; i++) {
		add_input_str(inputs, &n, c->recipients[i].name, 'B');
		add_input_str(inputs, &n, c->recipients[i].addr, 'B');
	}
	for (i = 0; i < c->n_attachments && i < SEARCH_ATTACHMENTS; i++)
		add_input_str(inputs, &n, c->attachments[i].filename, 'C');
	add_input(inputs, &n, c->text, c->text_len, 'D');
	add_input(inputs, &n, c->extra, c->extra_len, 'D');
	mark = column_begin(column);
	tsvector_build(&column->bytes, inputs, n);
	column_end(column, mark);
}

static void
add_attachments(struct batch *b, const struct content *c)
{
	struct column *columns = b->columns;
	size_t i;

	for (i = 0; i < c->n_attachments && i < ATTACHMENTS_MAX; i++) {
		const struct attachment *a = &c->attachments[i];

		column_int4(&columns[A_ROW], (int32_t)b->n + 1);
		column_int4(&columns[A_ORDINAL], (int32_t)i);
		column_int8(&columns[A_SIZE], (int64_t)a->size);
		column_bool(&columns[A_INLINE], a->is_inline);
		column_text(&columns[A_TYPE], a->content_type);
		column_text(&columns[A_FILENAME], a->filename);
		column_text(&columns[A_CID], a->content_id);
	}
}

/* References as one line of text. */
static void
add_references(struct batch *b, const struct content *c, uint32_t message)
{
	struct components *comps = &b->components;
	struct buf *line = &b->scratch;
	size_t i;

	buf_reset(line);
	for (i = 0; i < c->n_references; i++) {
		if (i < REFS_FIRST || i + REFS_LAST >= c->n_references)
			components_mid(comps, message,
			    mid_hash(c->references[i]));
		if (line->len + strlen(c->references[i]) < REFS_BYTES) {
			if (line->len > 0)
				buf_addc(line, ' ');
			buf_adds(line, c->references[i]);
		}
	}
	column_text(&b->columns[M_REFS], line->len > 0 ? line->data : NULL);
	if (c->in_reply_to != NULL)
		components_mid(comps, message, mid_hash(c->in_reply_to));
	column_text(&b->columns[M_IN_REPLY_TO], c->in_reply_to);
}

static void
add_person(struct batch *b, uint32_t message, const char *addr,
    bool is_author)
{
	if (addr == NULL || *addr == '\0')
		return;
	GROW(b->people, b->n_people, b->cap_people);
	b->people[b->n_people++] = (struct person){ message,
		address_key(addr), is_author };
}

static void
add_people(struct batch *b, const struct content *c, uint32_t message)
{
	size_t i;

	add_person(b, message, c->from_addr, true);
	for (i = 0; i < c->n_recipients && i < PEOPLE_MAX; i++)
		add_person(b, message, c->recipients[i].addr, false);
}

static void
batch_add_identity(struct batch *b, const struct content *c, struct entry *e)
{
	uint32_t message = components_message(&b->components);
	bool has_subject = c->base_subject != NULL && *c->base_subject != '\0';
	bool is_alone = c->n_references == 0 && c->in_reply_to == NULL;
	int start = START_NONE;

	if (c->message_id != NULL) {
		int64_t mid = mid_hash(c->message_id);

		components_mid(&b->components, message, mid);
		column_int8(&b->columns[M_MID], mid);
	} else
		column_null(&b->columns[M_MID]);
	column_text(&b->columns[M_MESSAGE_ID], c->message_id);
	add_references(b, c, message);
	add_people(b, c, message);
	if (is_alone && !c->is_reply)
		start = START_FIRST;
	else if (is_alone && has_subject)
		start = START_STRAY;
	column_int2(&b->columns[M_START], (int16_t)start);
	column_text(&b->columns[M_BASE_SUBJECT],
	    has_subject ? c->base_subject : "");
	e->has_subject = has_subject;
	if (has_subject)
		e->subject = subject_hash(c->base_subject);
}

static void
add_dates(struct batch *b, const struct place *place,
    const struct content *c)
{
	int64_t now = clock_wall_secs(), internal;

	if (place->has_internal_date)
		internal = place->internal_date_secs;
	else if (c->received_secs != 0)
		internal = c->received_secs;
	else if (c->has_sent_at && c->sent_at_secs < now + FUTURE_SECS)
		internal = c->sent_at_secs;
	else
		internal = now;
	column_time(&b->columns[M_INTERNAL], internal);
	/* See ingest(): a date that also says whose it is. */
	column_int8(&b->columns[M_AGE],
	    clamp_time(internal) * (1 << 20) + (int64_t)b->n + 1);
	column_time(&b->columns[M_SENT],
	    c->has_sent_at ? c->sent_at_secs : internal);
}

static void
batch_add_place(
    struct batch *b, const struct place *place, const struct blob_ref *blob)
{
	struct column *columns = b->columns;

	column_int8(&columns[M_UID], place->uid);
	column_int4(&columns[M_FLAGS],
	    place->has_flags ? (int32_t)place->flags.bits : 0);
	column_text(&columns[M_KEYWORDS],
	    place->has_flags ? place->flags.keywords : "");
	column_int8(&columns[M_MODSEQ], (int64_t)place->modseq);
	column_int8(&columns[M_SIZE],
	    (int64_t)(blob != NULL ? blob->size : place->size));
}

static bool
has_uid(const struct batch *b, uint32_t uid)
{
	size_t i;

	for (i = b->n; i > 0; i--)
		if (b->entries[i - 1].uid == uid)
			return true;
	return false;
}

void
batch_add(struct batch *b, const struct place *place,
    const struct blob_ref *blob, const struct content *c)
{
	struct column *columns = b->columns;
	struct entry *e;

	if (has_uid(b, place->uid))
		return;
	GROW(b->entries, b->n, b->cap);
	e = &b->entries[b->n];
	*e = (struct entry){ .uid = place->uid, .has_blob = blob != NULL };
	if (blob != NULL)
		e->blob = *blob;
	batch_add_place(b, place, blob);
	add_dates(b, place, c);
	batch_add_identity(b, c, e);
	column_text(&columns[M_SUBJECT], c->subject);
	column_text(&columns[M_FROM_ADDR], c->from_addr);
	column_text(&columns[M_FROM_NAME], c->from_name);
	add_recipients(b, c);
	column_text(&columns[M_SNIPPET], c->snippet != NULL ? c->snippet : "");
	column_bool(&columns[M_HAS_ATTACHMENTS], c->has_attachments);
	column_int2(&columns[M_PARSE_STATE], (int16_t)c->state);
	column_text(&columns[M_PARSE_REASON],
	    c->state_reason != NULL ? c->state_reason : "");
	add_search(b, c);
	add_attachments(b, c);
	b->n++;
}

/* --- sending --------------------------------------------------------------------- */

static int
compare_digests(const void *a, const void *b)
{
	const struct entry *x = *(const struct entry *const *)a;
	const struct entry *y = *(const struct entry *const *)b;
	int diff = memcmp(x->blob.digest, y->blob.digest, DIGEST_SIZE);

	return diff != 0 ? diff : (x > y) - (x < y);
}

static void
put_blob(struct batch *b, const struct blob_ref *blob, int32_t copies)
{
	struct column *columns = b->columns;

	column_bytes(&columns[B_DIGEST], blob->digest, DIGEST_SIZE);
	column_int4(&columns[B_SEGMENT], blob->segment);
	column_int8(&columns[B_OFFSET], blob->offset);
	column_int2(&columns[B_CODEC], (int16_t)blob->codec);
	column_int8(&columns[B_STORED], (int64_t)blob->stored);
	column_int8(&columns[B_SIZE], (int64_t)blob->size);
	column_int4(&columns[B_COPIES], copies);
}

/* Each digest once and sorted; m_blob: the number (from 1) of a message's. */
static void
seal_blobs(struct batch *b)
{
	const struct entry **order = xcalloc(b->n + 1, sizeof(*order));
	int32_t *number = xcalloc(b->n + 1, sizeof(*number));
	size_t i, next, n = 0;
	int32_t unique = 0;

	for (i = 0; i < b->n; i++)
		if (b->entries[i].has_blob)
			order[n++] = &b->entries[i];
	qsort(order, n, sizeof(*order), compare_digests);
	for (i = 0; i < n; i = next) {
		unique++;
		for (next = i; next < n && memcmp(order[i]->blob.digest,
		    order[next]->blob.digest, DIGEST_SIZE) == 0; next++)
			number[order[next] - b->entries] = unique;
		put_blob(b, &order[i]->blob, (int32_t)(next - i));
	}
	for (i = 0; i < b->n; i++) {
		if (b->entries[i].has_blob)
			column_int4(&b->columns[M_BLOB], number[i]);
		else
			column_null(&b->columns[M_BLOB]);
	}
	free(order);
	free(number);
}

/* The numbers 0 .. n-1 sorted by key[number], which is 1 .. n_keys; those of
 * key k stand from from_r[k] to from_r[k + 1].  Both are to be freed. */
static uint32_t *
sort_by_key(const uint32_t *key, size_t n, uint32_t n_keys, size_t **from_r)
{
	size_t *from = xcalloc(n_keys + 3, sizeof(*from));
	uint32_t *order = xcalloc(n + 1, sizeof(*order));
	size_t i;

	for (i = 0; i < n; i++)
		from[key[i] + 2]++;
	for (i = 1; i < n_keys + 3; i++)
		from[i] += from[i - 1];
	for (i = 0; i < n; i++)
		order[from[key[i] + 1]++] = (uint32_t)i;
	*from_r = from;
	return order;
}

/* The Message-IDs of a component stand together: see thread_resolve(). */
static void
seal_mids(struct batch *b, const uint32_t *comp, uint32_t n_comp)
{
	struct components *c = &b->components;
	uint32_t *key = xcalloc(c->n_mids + 1, sizeof(*key)), *order;
	size_t *from, i;

	for (i = 0; i < c->n_mids; i++)
		key[i] = comp[c->first[i]];
	order = sort_by_key(key, c->n_mids, n_comp, &from);
	for (i = 0; i < c->n_mids; i++) {
		column_int8(&b->columns[R_MID], c->mids[order[i]]);
		column_int4(&b->columns[R_COMP], (int32_t)key[order[i]]);
	}
	free(order);
	free(from);
	free(key);
}

/* "{1,2,3}": each once. */
static void
put_people(struct batch *b, enum batch_column column, const uint32_t *numbers,
    size_t n)
{
	int32_t seen[PEOPLE_MAX];
	struct buf *text = &b->scratch;
	size_t i, k, n_seen = 0;

	buf_reset(text);
	buf_addc(text, '{');
	for (i = 0; i < n && n_seen < PEOPLE_MAX; i++) {
		const struct person *p = &b->people[numbers[i]];

		for (k = 0; k < n_seen && seen[k] != p->key; k++)
			;
		if (k < n_seen || (column == C_AUTHORS && !p->is_author))
			continue;
		buf_addf(text, "%s%d", n_seen > 0 ? "," : "", p->key);
		seen[n_seen++] = p->key;
	}
	buf_addc(text, '}');
	column_text(&b->columns[column], buf_str(text));
}

static void
seal_people(struct batch *b, const uint32_t *comp, uint32_t n_comp)
{
	uint32_t *key = xcalloc(b->n_people + 1, sizeof(*key)), *order, k;
	size_t *from, i;

	for (i = 0; i < b->n_people; i++)
		key[i] = comp[b->people[i].message];
	order = sort_by_key(key, b->n_people, n_comp, &from);
	for (k = 1; k <= n_comp; k++) {
		put_people(b, C_AUTHORS, order + from[k],
		    from[k + 1] - from[k]);
		put_people(b, C_PEOPLE, order + from[k],
		    from[k + 1] - from[k]);
	}
	free(order);
	free(from);
	free(key);
}

static uint32_t
seal_components(struct batch *b)
{
	uint32_t *comp = xcalloc(b->n + 1, sizeof(*comp));
	uint32_t n_comp = components_number(&b->components, comp);
	size_t i;

	for (i = 0; i < b->n; i++)
		column_int4(&b->columns[M_COMP], (int32_t)comp[i]);
	seal_mids(b, comp, n_comp);
	seal_people(b, comp, n_comp);
	free(comp);
	return n_comp;
}

/* Keys of different accounts are different, to keep the index selective. */
static void
seal_subjects(struct batch *b, const struct uuid *account_id)
{
	char text[UUID_TEXT_SIZE];
	int64_t account = subject_hash(uuid_format(account_id, text));
	size_t i;

	for (i = 0; i < b->n; i++) {
		if (b->entries[i].has_subject)
			column_int8(&b->columns[M_SUBJECT_KEY],
			    b->entries[i].subject ^ account);
		else
			column_null(&b->columns[M_SUBJECT_KEY]);
	}
}

void
batch_params(struct batch *b, const struct uuid *account_id,
    struct params *p)
{
	/* Again from scratch: a batch may be sent twice. */
	static const enum batch_column sealed[] = { C_AUTHORS,
		C_PEOPLE, M_BLOB, M_COMP,
		M_SUBJECT_KEY, B_DIGEST, B_SEGMENT, B_OFFSET, B_CODEC,
		B_STORED, B_SIZE, B_COPIES, R_MID, R_COMP };
	size_t i;

	for (i = 0; i < sizeof(sealed) / sizeof(sealed[0]); i++)
		column_reset(&b->columns[sealed[i]]);
	seal_blobs(b);
	seal_subjects(b, account_id);
	param_int4(p, (int32_t)seal_components(b));
	for (i = 0; i < COLUMN_COUNT; i++)
		param_column(p, &b->columns[i]);
}
