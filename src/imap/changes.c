/*
 * changes.c - libetpan's message data as ours.
 *
 * Runs in: hot, pool and job children.  Never blocks.
 */
#define _GNU_SOURCE
#include "imap/changes.h"

#include "base/text.h"
#include "base/xmem.h"
#include "imap/keywords.h"

#include <ctype.h>

/* A list of this many vanished UIDs takes 8 MB (R-MEM-3). */
#define VANISHED_MAX ((size_t)2 << 20)
#define KEYWORDS_MAX 256

void
place_text_release(struct place_text *t)
{
	buf_release(&t->keywords);
	buf_release(&t->message_id);
}

/* --- flags --------------------------------------------------------------- */

static int
compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The words of a list, sorted and once each, with blanks between. */
static void
join_keywords(struct buf *text, const char **words, size_t n)
{
	size_t i;

	qsort(words, n, sizeof(words[0]), compare_strings);
	buf_reset(text);
	for (i = 0; i < n; i++) {
		if (i > 0 && strcmp(words[i], words[i - 1]) == 0)
			continue;
		if (text->len > 0)
			buf_addc(text, ' ');
		keyword_decode(text, words[i]);
	}
}

static void
changes_read_flags(struct flags *flags, struct buf *text, clist *list)
{
	const char *words[KEYWORDS_MAX];
	size_t n = 0;
	clistiter *it;

	flags->bits = 0;
	for (it = list != NULL ? clist_begin(list) : NULL; it != NULL;
	     it = clist_next(it)) {
		struct mailimap_flag_fetch *f = clist_content(it);

		if (f->fl_type != MAILIMAP_FLAG_FETCH_OTHER ||
		    f->fl_flag == NULL)
			continue; /* \Recent */
		switch (f->fl_flag->fl_type) {
		case MAILIMAP_FLAG_ANSWERED:
			flags->bits |= FLAG_ANSWERED;
			break;
		case MAILIMAP_FLAG_FLAGGED:
			flags->bits |= FLAG_FLAGGED;
			break;
		case MAILIMAP_FLAG_DELETED:
			flags->bits |= FLAG_DELETED;
			break;
		case MAILIMAP_FLAG_SEEN:
			flags->bits |= FLAG_SEEN;
			break;
		case MAILIMAP_FLAG_DRAFT:
			flags->bits |= FLAG_DRAFT;
			break;
		case MAILIMAP_FLAG_KEYWORD:
			if (n < KEYWORDS_MAX &&
			    f->fl_flag->fl_data.fl_keyword != NULL)
				words[n++] = f->fl_flag->fl_data.fl_keyword;
			break;
		}
	}
	join_keywords(text, words, n);
	flags->keywords = buf_str(text);
}

/* --- dates --------------------------------------------------------------- */

/* Days since 1970-01-01 in the proleptic Gregorian calendar. */
static int64_t
days_from_civil(int64_t y, int m, int d)
{
	int64_t era, yoe, doy;

	y -= m <= 2;
	era = (y >= 0 ? y : y - 399) / 400;
	yoe = y - era * 400;
	doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

/* "00-Jan-0000" means that there is none (L145). */
static bool
changes_read_date(const struct mailimap_date_time *t, int64_t *secs_r)
{
	int zone = t->dt_zone < 0 ? -t->dt_zone : t->dt_zone;
	int64_t offset = (zone / 100) * 3600 + (zone % 100) * 60;

	if (t->dt_day < 1 || t->dt_day > 31 || t->dt_month < 1 ||
	    t->dt_month > 12 || t->dt_year < 1 || t->dt_year > 9999 ||
	    t->dt_hour < 0 || t->dt_hour > 23 || t->dt_min < 0 ||
	    t->dt_min > 59 || t->dt_sec < 0 || t->dt_sec > 60 ||
	    zone % 100 > 59 || zone / 100 > 24)
		return false;
	*secs_r = days_from_civil(t->dt_year, t->dt_month, t->dt_day) * 86400 +
	    t->dt_hour * 3600 + t->dt_min * 60 + t->dt_sec -
	    (t->dt_zone < 0 ? -offset : offset);
	return true;
}

/* --- Message-ID ---------------------------------------------------------- */

/* The header as BODY[HEADER.FIELDS (MESSAGE-ID)] gives it, maybe folded. */
static const char *
read_message_id(struct buf *out, const char *header, size_t len)
{
	static const char field[] = "Message-ID:";
	const char *p, *end = header + len, *open, *close;

	if (len < sizeof(field) || strncasecmp(header, field,
		sizeof(field) - 1) != 0)
		return NULL;
	p = header + sizeof(field) - 1;
	open = memchr(p, '<', (size_t)(end - p));
	close = open != NULL ? memchr(open, '>', (size_t)(end - open)) : NULL;
	if (close != NULL) {
		p = open + 1;
		end = close;
	}
	while (p < end && isspace((unsigned char)*p))
		p++;
	while (end > p && (isspace((unsigned char)end[-1]) || end[-1] == '\0'))
		end--;
	if (p == end || memchr(p, '\0', (size_t)(end - p)) != NULL ||
	    !text_is_utf8(p, (size_t)(end - p)))
		return NULL;
	buf_reset(out);
	buf_add(out, p, (size_t)(end - p));
	return out->data;
}

/* --- one message --------------------------------------------------------- */

static void
read_static(struct place *place, struct place_text *t,
    struct mailimap_msg_att_static *s, bool *has_body)
{
	struct mailimap_msg_att_body_section *section;

	switch (s->att_type) {
	case MAILIMAP_MSG_ATT_UID:
		place->uid = s->att_data.att_uid;
		break;
	case MAILIMAP_MSG_ATT_RFC822_SIZE:
		place->size = s->att_data.att_rfc822_size;
		break;
	case MAILIMAP_MSG_ATT_INTERNALDATE:
		if (s->att_data.att_internal_date != NULL)
			place->has_internal_date =
			    changes_read_date(s->att_data.att_internal_date,
				&place->internal_date_secs);
		break;
	case MAILIMAP_MSG_ATT_BODY_SECTION:
		section = s->att_data.att_body_section;
		if (section->sec_body_part == NULL)
			break;
		if (section->sec_section != NULL &&
		    section->sec_section->sec_spec != NULL)
			place->message_id = read_message_id(&t->message_id,
			    section->sec_body_part, section->sec_length);
		else
			*has_body = true;
		break;
	}
}

void
place_read(struct place *place, struct place_text *t,
    struct mailimap_msg_att *att, bool *has_body_r)
{
	bool has_body = false;
	clistiter *i;

	memset(place, 0, sizeof(*place));
	place->flags.keywords = "";
	for (i = clist_begin(att->att_list); i != NULL; i = clist_next(i)) {
		struct mailimap_msg_att_item *item = clist_content(i);
		struct mailimap_extension_data *ext;

		switch (item->att_type) {
		case MAILIMAP_MSG_ATT_ITEM_DYNAMIC:
			place->has_flags = true;
			changes_read_flags(&place->flags, &t->keywords,
			    item->att_data.att_dyn->att_list);
			break;
		case MAILIMAP_MSG_ATT_ITEM_STATIC:
			read_static(place, t, item->att_data.att_static,
			    &has_body);
			break;
		case MAILIMAP_MSG_ATT_ITEM_EXTENSION:
			ext = item->att_data.att_extension_data;
			if (ext->ext_extension ==
				&mailimap_extension_condstore &&
			    ext->ext_type == MAILIMAP_CONDSTORE_TYPE_FETCH_DATA)
				place->modseq =
				    ((struct mailimap_condstore_fetch_mod_resp
					    *)ext->ext_data)->cs_modseq_value;
			break;
		}
	}
	if (has_body_r != NULL)
		*has_body_r = has_body;
}

/* --- changes ------------------------------------------------------------- */

void
changes_add_message(struct imap_changes *changes,
    struct mailimap_msg_att *att)
{
	struct place_text text = { .keywords = BUF_INIT };
	struct place place;

	place_read(&place, &text, att, NULL);
	if (place.uid != 0 && place.has_flags) {
		place.flags.keywords = place.flags.keywords[0] == '\0' ? "" :
		    arena_strdup(changes->arena, place.flags.keywords);
		place.message_id = NULL;
		if (changes->n_changed == changes->cap_changed) {
			size_t cap = changes->cap_changed ?
			    changes->cap_changed * 2 : 64;
			struct place *bigger = ARENA_ARRAY(changes->arena,
			    struct place, cap);

			if (changes->n_changed > 0)
				memcpy(bigger, changes->changed,
				    changes->n_changed * sizeof(place));
			changes->changed = bigger;
			changes->cap_changed = cap;
		}
		changes->changed[changes->n_changed++] = place;
	} else if (place.has_flags)
		changes->n_unnamed++;
	place_text_release(&text);
}

static void
changes_make_room(struct imap_changes *changes, size_t n)
{
	size_t cap = changes->cap_vanished ? changes->cap_vanished : 64;
	uint32_t *bigger;

	if (changes->n_vanished + n <= changes->cap_vanished)
		return;
	while (cap < changes->n_vanished + n)
		cap *= 2;
	bigger = arena_alloc(changes->arena, cap * sizeof(uint32_t));
	if (changes->n_vanished > 0)
		memcpy(bigger, changes->vanished,
		    changes->n_vanished * sizeof(uint32_t));
	changes->vanished = bigger;
	changes->cap_vanished = cap;
}

void
changes_add_vanished(struct imap_changes *changes,
    const struct mailimap_set *set)
{
	clistiter *i;

	if (set == NULL)
		return;
	for (i = clist_begin(set->set_list); i != NULL; i = clist_next(i)) {
		struct mailimap_set_item *item = clist_content(i);
		uint64_t from = item->set_first, to = item->set_last, uid;

		if (from > to) {
			from = item->set_last;
			to = item->set_first;
		}
		if (from == 0)
			from = 1;
		if (to > changes->vanished_limit &&
		    changes->vanished_limit != 0)
			to = changes->vanished_limit;
		if (from > to)
			continue;
		if (to - from >= VANISHED_MAX - changes->n_vanished) {
			changes->is_cut = true;
			continue;
		}
		changes_make_room(changes, (size_t)(to - from + 1));
		for (uid = from; uid <= to; uid++)
			changes->vanished[changes->n_vanished++] =
			    (uint32_t)uid;
	}
}

static int
changes_compare_uids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void
changes_finish(struct imap_changes *changes, uint32_t last)
{
	size_t i, n = 0;

	if (changes->n_vanished == 0)
		return;
	qsort(changes->vanished, changes->n_vanished, sizeof(uint32_t),
	    changes_compare_uids);
	for (i = 0; i < changes->n_vanished; i++) {
		uint32_t uid = changes->vanished[i];

		if (uid <= last && (n == 0 || changes->vanished[n - 1] != uid))
			changes->vanished[n++] = uid;
	}
	changes->n_vanished = n;
}
