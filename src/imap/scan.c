/*
 * scan.c - flags, sizes and dates of many messages.
 *
 * Runs in: hot, pool and job children.  Blocks as the wire does.
 *
 * Each FETCH line is handed on and forgotten; what grows is only the text of
 * the reply, about 50 bytes a message.  Where even that is too much the rest is
 * asked for in another command.
 */
#include "imap/changes.h"
#include "imap/command.h"

#define SCAN_TEXT_MAX ((uint64_t)256 << 20)
#define HEADER_MAX ((uint64_t)1 << 20)

struct scan_job {
	uint32_t from, to; /* UIDs asked for; 0: no limit */
	imap_on_place on_place;
	void *arg;
	struct place_text text;
	uint32_t last;	    /* UID that came */
	bool is_mixed;	    /* they do not come in order */
	bool is_cut;
	bool is_refused; /* the server said NO or BAD */
	/* imap_uids_at */
	const uint32_t *seqs;
	uint32_t *uids;
	size_t n;
};

static void
scan_on_message(struct imap *r, struct mailimap_msg_att *att, void *arg)
{
	struct scan_job *job = arg;
	struct place place;

	if (stream_error(r->stream)->kind != ERR_NONE)
		return;
	place_read(&place, &job->text, att, NULL);
	if (place.uid == 0 || place.uid < job->from ||
	    (job->to != 0 && place.uid > job->to)) {
		r->is_disturbed = true;
		return;
	}
	job->is_mixed |= place.uid <= job->last;
	job->last = place.uid;
	if (job->on_place(job->arg, &place) == -1)
		stream_fail(r->stream, ERR_STOPPED, "the caller ended the scan");
}

static void
on_numbered(struct imap *r, struct mailimap_msg_att *att, void *arg)
{
	struct scan_job *job = arg;
	struct place place;
	size_t i;

	(void)r;
	place_read(&place, &job->text, att, NULL);
	for (i = 0; i < job->n; i++)
		if (job->seqs[i] == att->att_number)
			job->uids[i] = place.uid;
}

static void
add_items(struct buf *out, unsigned items)
{
	buf_adds(out, " (UID");
	if (items & ITEM_FLAGS)
		buf_adds(out, " FLAGS");
	if (items & ITEM_SIZE)
		buf_adds(out, " RFC822.SIZE");
	if (items & ITEM_DATE)
		buf_adds(out, " INTERNALDATE");
	if (items & ITEM_MODSEQ)
		buf_adds(out, " MODSEQ");
	if (items & ITEM_MESSAGE_ID)
		buf_adds(out, " BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)]");
	buf_addc(out, ')');
}

typedef void (*on_att)(struct imap *r, struct mailimap_msg_att *att,
    void *arg);

/* Sends the command in `out`, which ends with a set, and reads its answer. */
static int
scan_run_command(struct imap *r, int tag, struct buf *out, unsigned items,
    on_att on, struct scan_job *job, struct err *err)
{
	struct sanitize_notes *notes = stream_notes(r->stream);
	struct reply reply;
	int result;

	notes->n_lost_fetches = 0;
	if (!(r->caps & IMAP_CONDSTORE))
		items &= ~(unsigned)ITEM_MODSEQ;
	add_items(out, items);
	stream_set_limits(r->stream, HEADER_MAX, SCAN_TEXT_MAX);
	if (command_send(r, out, err) == -1)
		return -1;
	stream_set_stall(r->stream, r->command_msecs);
	r->on_message = on;
	r->on_message_arg = job;
	result = command_reply(r, tag, &reply, err);
	r->on_message = NULL;
	job->is_refused = result == 0 && reply.status != REPLY_OK;
	if (result == -1 || reply_check_object(r, &reply, "FETCH", err) == -1)
		return -1;
	job->is_cut = notes->is_cut;
	if (job->is_cut)
		return err_set(err, ERR_SERVER, "%s: FETCH: more untagged "
		    "answers than can be held", r->host);
	/* A message left out here would be taken for one that is gone. */
	if (notes->n_lost_fetches > 0)
		return err_set(err, ERR_SERVER, "%s: FETCH: %u answers could "
		    "not be read", r->host, notes->n_lost_fetches);
	return 0;
}

static int
imap_scan_run(struct imap *r, const char *command, uint32_t from, uint32_t to,
    unsigned items, struct scan_job *job, struct err *err)
{
	struct buf out = BUF_INIT;
	int tag = command_begin(r, &out), result;

	buf_addf(&out, "%s %u:", command, from);
	if (to == 0)
		buf_addc(&out, '*');
	else
		buf_addf(&out, "%u", to);
	result =
	    scan_run_command(r, tag, &out, items, scan_on_message, job, err);
	buf_release(&out);
	return result;
}

/* The same with a list, as far as it fits; how much was done in *n. */
static int
run_set(struct imap *r, const char *command, const uint32_t *numbers,
    size_t *n, unsigned items, struct scan_job *job, struct err *err)
{
	struct buf out = BUF_INIT;
	int tag = command_begin(r, &out), result;

	buf_addf(&out, "%s ", command);
	*n = command_add_set(&out, numbers, *n);
	result = scan_run_command(r, tag, &out, items,
	    job->uids != NULL ? on_numbered : scan_on_message, job, err);
	buf_release(&out);
	return result;
}

/* The first that was cut off is behind the last that came. */
static bool
goes_on(struct scan_job *job)
{
	if (!job->is_cut || job->is_mixed || job->last < job->from ||
	    job->last == UINT32_MAX)
		return false;
	job->from = job->last + 1;
	return job->to == 0 || job->from <= job->to;
}

int
imap_scan_set(struct imap *r, const uint32_t *uids, size_t n,
    unsigned items, imap_on_place on_place, void *arg,
    bool *is_refused_r, struct err *err)
{
	struct scan_job job = { .on_place = on_place, .arg = arg };
	size_t from, some;
	int result = 0;

	for (from = 0; from < n && result == 0; from += some) {
		some = n - from;
		job.from = uids[from];
		job.to = uids[n - 1];
		result = run_set(r, "UID FETCH", uids + from, &some, items,
		    &job, err);
	}
	if (is_refused_r != NULL)
		*is_refused_r = job.is_refused;
	place_text_release(&job.text);
	return result;
}

int
imap_uids_at(struct imap *r, const uint32_t *seqs, size_t n,
    uint32_t *uids_r, struct err *err)
{
	struct scan_job job = { .seqs = seqs, .uids = uids_r, .n = n };
	size_t some = n;
	int result;

	memset(uids_r, 0, n * sizeof(*uids_r));
	result = run_set(r, "FETCH", seqs, &some, 0, &job, err);
	place_text_release(&job.text);
	return result;
}

int
imap_scan_uids(struct imap *r, uint32_t from, uint32_t to, unsigned items,
    imap_on_place on_place, void *arg, struct err *err)
{
	struct scan_job job = { .from = from > 0 ? from : 1, .to = to,
		.on_place = on_place, .arg = arg };
	struct err more = ERR_INIT;
	int result;

	do {
		job.is_cut = false;
		more.kind = ERR_NONE;
		result = imap_scan_run(
		    r, "UID FETCH", job.from, to, items, &job, &more);
	} while (result == -1 && goes_on(&job));
	if (result == -1)
		*err = more;
	place_text_release(&job.text);
	return result;
}

int
imap_scan_seq(struct imap *r, uint32_t from, uint32_t to, unsigned items,
    imap_on_place on_place, void *arg, struct err *err)
{
	struct scan_job job = { .on_place = on_place, .arg = arg };
	struct mailimap_selection_info *info = r->imap->imap_selection_info;
	int result;

	/* Sequence numbers that are not there are an error to the server. */
	if (info == NULL || info->sel_exists == 0)
		return imap_check(r, err);
	if (from == 0)
		from = 1;
	if (r->is_exists_known) {
		if (from > info->sel_exists)
			return imap_check(r, err);
		if (to > info->sel_exists)
			to = 0;
	}
	result = imap_scan_run(r, "FETCH", from, to, items, &job, err);
	place_text_release(&job.text);
	return result;
}
