/*
 * tsvector.c - text to what PostgreSQL searches.
 *
 * Runs in: children that store messages, mailherdctl.  Never blocks.
 *
 * The server's own parser costs 91 us a message and does not know addresses
 * with parts; this takes a fifth.  A word is found in the text by the same
 * folding that the query goes through (words.h), so neither side needs a
 * PostgreSQL dictionary.  Positions are counted across inputs, with a gap
 * between them that no phrase spans.
 */
#include "config.h"

#include "mail/tsvector.h"

#include "base/text.h"
#include "base/xmem.h"
#include "mail/words.h"

/* PostgreSQL's limits (tsvector's ts_type.h), with room to spare. */
#define POSITION_MAX 16383u
#define POSITIONS_MAX 255u
#define STORAGE_MAX ((size_t)900000)

#define QUERY_WORDS_MAX 64

struct lexeme {
	uint64_t key; /* its first eight bytes, for sorting */
	uint32_t hash;
	uint32_t offset, first, last; /* in bytes; in spots */
	uint16_t len;
	uint16_t n_spots;
};

struct spot {
	uint16_t position; /* with the weight's bits */
	uint32_t next;
};

struct builder {
	struct buf bytes;
	struct lexeme *lexemes;
	size_t n_lexemes, cap_lexemes;
	struct spot *spots;
	size_t n_spots, cap_spots;
	uint32_t *slots; /* hash table of lexeme numbers + 1 */
	size_t n_slots;
	size_t storage; /* what the server will need */
};

static uint32_t
hash_bytes(const char *s, size_t len)
{
	uint32_t h = 2166136261u;

	while (len-- > 0)
		h = (h ^ (unsigned char)*s++) * 16777619u;
	return h;
}

static uint64_t
sort_key(const char *s, size_t len)
{
	uint64_t key = 0;
	size_t i;

	for (i = 0; i < 8; i++)
		key = key << 8 | (i < len ? (unsigned char)s[i] : 0);
	return key;
}

static void
tsvector_grow_slots(struct builder *b)
{
	size_t i, at;

	b->n_slots = b->n_slots == 0 ? 1024 : b->n_slots * 2;
	free(b->slots);
	b->slots = xcalloc(b->n_slots, sizeof(*b->slots));
	for (i = 0; i < b->n_lexemes; i++) {
		at = b->lexemes[i].hash & (b->n_slots - 1);
		while (b->slots[at] != 0)
			at = (at + 1) & (b->n_slots - 1);
		b->slots[at] = (uint32_t)i + 1;
	}
}

/* NULL: no room for another lexeme. */
static struct lexeme *
find_lexeme(struct builder *b, const char *s, size_t len)
{
	uint32_t hash = hash_bytes(s, len);
	struct lexeme *lx;
	size_t at;

	if (b->n_lexemes * 2 >= b->n_slots)
		tsvector_grow_slots(b);
	for (at = hash & (b->n_slots - 1); b->slots[at] != 0;
	    at = (at + 1) & (b->n_slots - 1)) {
		lx = &b->lexemes[b->slots[at] - 1];
		if (lx->hash == hash && lx->len == len &&
		    memcmp(b->bytes.data + lx->offset, s, len) == 0)
			return lx;
	}
	/* bytes, alignment, count of positions, entry */
	if (b->storage + len + 8 > STORAGE_MAX)
		return NULL;
	b->storage += len + 8;
	GROW(b->lexemes, b->n_lexemes, b->cap_lexemes);
	lx = &b->lexemes[b->n_lexemes++];
	*lx = (struct lexeme){ .key = sort_key(s, len), .hash = hash,
		.offset = (uint32_t)b->bytes.len, .len = (uint16_t)len };
	buf_add(&b->bytes, s, len);
	b->slots[at] = (uint32_t)b->n_lexemes;
	return lx;
}

static void
add_lexeme(struct builder *b, const char *s, size_t len, unsigned position,
    unsigned weight)
{
	struct lexeme *lx = find_lexeme(b, s, len);
	struct spot *spot;

	if (lx == NULL)
		return;
	if (position > POSITION_MAX)
		position = POSITION_MAX;
	/* The server wants them strictly rising. */
	if (lx->n_spots > 0 && (b->spots[lx->last].position & POSITION_MAX) >=
	    position)
		return;
	if (lx->n_spots >= POSITIONS_MAX ||
	    b->storage + 2 > STORAGE_MAX)
		return;
	b->storage += 2;
	GROW(b->spots, b->n_spots, b->cap_spots);
	spot = &b->spots[b->n_spots];
	spot->position = (uint16_t)(weight << 14 | position);
	spot->next = 0;
	if (lx->n_spots++ == 0)
		lx->first = (uint32_t)b->n_spots;
	else
		b->spots[lx->last].next = (uint32_t)b->n_spots;
	lx->last = (uint32_t)b->n_spots++;
}

static void
add_run(struct builder *b, const struct run *run, unsigned position,
    unsigned weight)
{
	size_t i;

	if (run->whole.len > 0)
		add_lexeme(b, run->bytes + run->whole.offset, run->whole.len,
		    position, weight);
	if (run->host.len > 0)
		add_lexeme(b, run->bytes + run->host.offset, run->host.len,
		    position + (unsigned)run->host_part, weight);
	for (i = 0; i < run->n_parts; i++)
		add_lexeme(b, run->bytes + run->parts[i].offset,
		    run->parts[i].len, position + (unsigned)i, weight);
}

/* Small, so that sorting moves little. */
struct rank {
	uint64_t key;
	const struct lexeme *lexeme;
};

static int
on_compare(const void *va, const void *vb, void *bytes)
{
	const struct rank *ra = va, *rb = vb;
	const struct lexeme *a = ra->lexeme, *b = rb->lexeme;
	int c;

	if (ra->key != rb->key)
		return ra->key < rb->key ? -1 : 1;
	c = memcmp((char *)bytes + a->offset, (char *)bytes + b->offset,
	    a->len < b->len ? a->len : b->len);
	return c != 0 ? c : (int)a->len - (int)b->len;
}

static struct rank *
tsvector_sorted(const struct builder *b)
{
	struct rank *ranks = xcalloc(b->n_lexemes + 1, sizeof(*ranks));
	size_t i;

	for (i = 0; i < b->n_lexemes; i++)
		ranks[i] = (struct rank){ b->lexemes[i].key, &b->lexemes[i] };
	qsort_r(ranks, b->n_lexemes, sizeof(*ranks), on_compare,
	    b->bytes.data);
	return ranks;
}

static char *
put_u16be(char *p, unsigned v)
{
	*p++ = (char)(v >> 8);
	*p++ = (char)v;
	return p;
}

static char *
put_lexeme(char *p, const struct builder *b, const struct lexeme *lx)
{
	uint32_t at = lx->first;
	unsigned k;

	memcpy(p, b->bytes.data + lx->offset, lx->len);
	p += lx->len;
	*p++ = '\0';
	p = put_u16be(p, lx->n_spots);
	for (k = 0; k < lx->n_spots; k++) {
		p = put_u16be(p, b->spots[at].position);
		at = b->spots[at].next;
	}
	return p;
}

static void
tsvector_write_out(struct builder *b, struct buf *out)
{
	struct rank *ranks = tsvector_sorted(b);
	char *p;
	size_t i;

	buf_add_u32be(out, (uint32_t)b->n_lexemes);
	p = buf_reserve(out, b->bytes.len + 3 * b->n_lexemes +
	    2 * b->n_spots);
	for (i = 0; i < b->n_lexemes; i++)
		p = put_lexeme(p, b, ranks[i].lexeme);
	out->len = (size_t)(p - out->data);
	*p = '\0';
	free(ranks);
}

void
tsvector_build(struct buf *out, const struct tsv_input *inputs, size_t n)
{
	struct builder b = { .bytes = BUF_INIT };
	struct word_scan scan;
	struct run run;
	unsigned position = 1, weight;
	size_t i;

	for (i = 0; i < n; i++) {
		if (inputs[i].len == 0)
			continue;
		weight = (unsigned)('D' - inputs[i].weight) & 3;
		scan.p = (const unsigned char *)inputs[i].text;
		scan.end = scan.p + inputs[i].len;
		while (b.storage + 64 < STORAGE_MAX &&
		    words_next(&scan, &run)) {
			add_run(&b, &run, position, weight);
			if (position <= POSITION_MAX)
				position += (unsigned)run.n_parts;
		}
		position++; /* no phrase spans two inputs */
	}
	tsvector_write_out(&b, out);
	buf_release(&b.bytes);
	free(b.lexemes);
	free(b.spots);
	free(b.slots);
}

/* --- queries ------------------------------------------------------------- */

/* Words hold letters, digits and connectors only: nothing to escape. */
static void
tsvector_add_quoted(
    struct buf *q, const struct run *run, struct word w, bool is_prefix)
{
	buf_addc(q, '\'');
	buf_add(q, run->bytes + w.offset, w.len);
	buf_adds(q, is_prefix ? "':*" : "'");
}

/*
 * "ab" "bc" say all of a run of pairs; its last character alone would only
 * match at the end of a run, unless there is nothing else.
 */
static bool
is_tail_dropped(const struct run *run)
{
	return run->is_pairs && run->has_tail && run->n_parts > 1;
}

static void
add_parts(struct buf *q, const struct run *run, bool is_prefix)
{
	size_t i, n = run->n_parts - is_tail_dropped(run);

	if (run->is_pairs)
		is_prefix = run->has_tail && run->n_parts == 1;
	for (i = 0; i < n; i++) {
		if (i > 0)
			buf_adds(q, " <-> ");
		tsvector_add_quoted(
		    q, run, run->parts[i], is_prefix && i + 1 == n);
	}
}

/* All words of `text` next to each other; how many there were. */
static size_t
add_phrase(struct buf *q, const char *text, size_t len, bool is_prefix,
    size_t max)
{
	struct word_scan scan = { .p = (const unsigned char *)text,
		.end = (const unsigned char *)text + len };
	struct run run, next;
	size_t n = 0;
	bool more = words_next(&scan, &run);

	while (more && n < max) {
		more = words_next(&scan, &next);
		add_parts(q, &run, is_prefix && !more);
		n += run.n_parts;
		if (more && n < max)
			buf_adds(q, is_tail_dropped(&run) ? " <2> " : " <-> ");
		run = next;
	}
	return n;
}

static size_t
add_term(struct buf *q, const char *text, size_t len, bool is_prefix,
    size_t max)
{
	struct word_scan scan = { .p = (const unsigned char *)text,
		.end = (const unsigned char *)text + len };
	struct run run, next;

	if (!words_next(&scan, &run))
		return 0;
	if (run.whole.len == 0 || words_next(&scan, &next))
		return add_phrase(q, text, len, is_prefix, max);
	tsvector_add_quoted(q, &run, run.whole, is_prefix);
	buf_adds(q, " | (");
	add_parts(q, &run, is_prefix);
	buf_addc(q, ')');
	return run.n_parts;
}

static bool
tsvector_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* One word or "phrase" from *s; leaves *s behind it. */
static size_t
take_term(struct buf *q, const char **s, size_t max)
{
	const char *p = *s, *end;
	size_t n;

	if (*p == '"') {
		p++;
		end = p + strcspn(p, "\"");
		n = add_phrase(q, p, (size_t)(end - p), false, max);
		*s = *end == '"' ? end + 1 : end;
		return n;
	}
	for (end = p; *end != '\0' && *end != '"' && !tsvector_is_blank(*end);
	     end++)
		;
	*s = end;
	return add_term(q, p, (size_t)(end - p), end > p && end[-1] == '*',
	    max);
}

char *
tsquery_build(struct arena *arena, const char *user_query)
{
	struct buf q = BUF_INIT, term = BUF_INIT;
	const char *s = user_query;
	size_t words = 0, n;
	bool is_not;
	char *out = NULL;

	while (words < QUERY_WORDS_MAX) {
		while (tsvector_is_blank(*s))
			s++;
		if (*s == '\0')
			break;
		is_not = *s == '-' && s[1] != '\0' && !tsvector_is_blank(s[1]);
		if (is_not)
			s++;
		buf_reset(&term);
		n = take_term(&term, &s, QUERY_WORDS_MAX - words);
		if (n == 0)
			continue;
		words += n;
		buf_addf(&q, "%s%s(%s)", q.len > 0 ? " & " : "",
		    is_not ? "!" : "", buf_str(&term));
	}
	if (q.len > 0)
		out = arena_strndup(arena, q.data, q.len);
	buf_release(&q);
	buf_release(&term);
	return out;
}
