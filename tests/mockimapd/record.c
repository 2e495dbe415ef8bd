/*
 * record.c - who did what when: the call log.
 *
 * Runs in: mockimapd.  Never blocks, but for writing its file.
 */
#include "config.h"

#include "record.h"

#include "base/text.h"
#include "base/xmem.h"


#define TEXT_MAX 72
#define FIRST_SLOTS 4096

const char *const record_names[RECORD_KIND_COUNT] = {
#define X(symbol, name) [symbol] = name,
	RECORD_KINDS(X)
#undef X
};

struct entry {
	int64_t mono_usecs, wall_usecs;
	const struct account *account;
	uint32_t conn;
	enum record_kind kind;
	char text[TEXT_MAX];
};

struct record {
	struct entry *entries;
	size_t slots, max;
	uint64_t next; /* sequence number of the next entry, from 1 */
	FILE *file;
};

static int64_t
usecs(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t
record_mono_usecs(void)
{
	return usecs(CLOCK_MONOTONIC);
}

int64_t
record_wall_usecs(void)
{
	return usecs(CLOCK_REALTIME);
}

struct record *
record_new(size_t ring, const char *path)
{
	struct record *record;
	FILE *file = NULL;

	if (path != NULL && (file = fopen(path, "ae")) == NULL)
		return NULL;
	record = xcalloc(1, sizeof(*record));
	record->max = ring < FIRST_SLOTS ? FIRST_SLOTS : ring;
	record->next = 1;
	record->file = file;
	return record;
}

void
record_free(struct record **record)
{
	if (*record == NULL)
		return;
	if ((*record)->file != NULL)
		fclose((*record)->file);
	free((*record)->entries);
	free(*record);
	*record = NULL;
}

static uint64_t
first_kept(const struct record *record)
{
	return record->next > record->slots ? record->next - record->slots : 1;
}

/* While it grows the ring has not wrapped, so entry i is at place i - 1. */
static struct entry *
next_entry(struct record *record)
{
	if (record->next > record->slots && record->slots < record->max) {
		size_t slots = record->slots == 0 ? FIRST_SLOTS :
		    record->slots * 2;

		record->slots = slots > record->max ? record->max : slots;
		record->entries = xreallocarray(record->entries,
		    record->slots, sizeof(record->entries[0]));
	}
	return &record->entries[(record->next++ - 1) % record->slots];
}

static const char *
login_of(const struct entry *entry)
{
	return entry->account != NULL ? entry->account->login : "";
}

void
record_add(struct record *record, enum record_kind kind, uint32_t conn,
    const struct account *account, const char *text)
{
	struct entry *entry = next_entry(record);

	entry->mono_usecs = record_mono_usecs();
	entry->wall_usecs = record_wall_usecs();
	entry->account = account;
	entry->conn = conn;
	entry->kind = kind;
	text_clean_line(entry->text, sizeof(entry->text), text, strlen(text));
	if (record->file == NULL)
		return;
	fprintf(record->file, "%llu\t%lld\t%lld\t%u\t%s\t%s\t%s\n",
	    (unsigned long long)(record->next - 1),
	    (long long)entry->mono_usecs, (long long)entry->wall_usecs, conn,
	    login_of(entry), record_names[kind], entry->text);
	fflush(record->file);
}

static json_t *
entry_to_json(const struct entry *entry, uint64_t seq)
{
	return json_pack("[I,I,I,i,s,s,s]", (json_int_t)seq,
	    (json_int_t)entry->mono_usecs, (json_int_t)entry->wall_usecs,
	    (int)entry->conn, login_of(entry), record_names[entry->kind],
	    entry->text);
}

json_t *
record_read(const struct record *record, const struct record_query *query,
    uint64_t *next_r, uint64_t *lost_r)
{
	json_t *entries = json_array();
	uint64_t first = first_kept(record), seq;

	seq = query->since > 0 ? query->since : 1;
	*lost_r = seq < first ? first - seq : 0;
	if (seq < first)
		seq = first;
	if (seq > record->next)
		seq = record->next;
	for (; seq < record->next && json_array_size(entries) < query->limit;
	    seq++) {
		const struct entry *entry =
		    &record->entries[(seq - 1) % record->slots];

		if ((query->kinds & (1U << entry->kind)) != 0 &&
		    (query->account == NULL ||
			query->account == entry->account))
			json_array_append_new(entries,
			    entry_to_json(entry, seq));
	}
	*next_r = seq;
	return entries;
}
