/*
 * scan.c - flags, sizes and dates of many messages.
 *
 * Runs in: hot, pool and job children.  Blocks as the wire does.
 *
 * Each FETCH line is handed on and forgotten; what grows is only the text of
 * the reply, about 50 bytes a message.  Where even that is too much the rest is
 * asked for in another command.
 */
#include "remote/changes.h"
#include "remote/command.h"

#define SCAN_TEXT_MAX ((uint64_t)256 << 20)
#define HEADER_MAX ((uint64_t)1 << 20)

struct scan_job {
	uint32_t from, to; /* UIDs asked for; 0: no limit */
	remote_on_place on_place;
	void *arg;
	struct place_text text;
	uint32_t last;	    /* UID that came */
	bool is_mixed;	    /* they do not come in order */
	bool is_cut;
};

static void
on_message(struct remote *r, struct mailimap_msg_att *att, void *arg)
{
	struct scan_job *job = arg;
	struct place place;

	if (wire_error(r->wire)->kind != ERR_NONE)
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
		wire_fail(r->wire, ERR_STOPPED, "the caller ended the scan");
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

static int
run(struct remote *r, const char *command, uint32_t from, uint32_t to,
    unsigned items, struct scan_job *job, struct err *err)
{
	struct mend_notes *notes = wire_notes(r->wire);
	struct buf out = BUF_INIT;
	struct reply reply;
	int tag, result;

	notes->n_lost_fetches = 0;
	if (!(r->caps & REMOTE_CONDSTORE))
		items &= ~(unsigned)ITEM_MODSEQ;
	tag = command_begin(r, &out);
	buf_addf(&out, "%s %u:", command, from);
	if (to == 0)
		buf_addc(&out, '*');
	else
		buf_addf(&out, "%u", to);
	add_items(&out, items);
	wire_set_limits(r->wire, HEADER_MAX, SCAN_TEXT_MAX);
	result = command_send(r, &out, err);
	buf_release(&out);
	if (result == -1)
		return -1;
	wire_set_stall(r->wire, r->command_msecs);
	r->on_message = on_message;
	r->on_message_arg = job;
	result = command_reply(r, tag, &reply, err);
	r->on_message = NULL;
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
remote_scan_uids(struct remote *r, uint32_t from, uint32_t to, unsigned items,
    remote_on_place on_place, void *arg, struct err *err)
{
	struct scan_job job = { .from = from > 0 ? from : 1, .to = to,
		.on_place = on_place, .arg = arg };
	struct err more = ERR_INIT;
	int result;

	do {
		job.is_cut = false;
		more.kind = ERR_NONE;
		result = run(r, "UID FETCH", job.from, to, items, &job,
		    &more);
	} while (result == -1 && goes_on(&job));
	if (result == -1)
		*err = more;
	place_text_release(&job.text);
	return result;
}

int
remote_scan_seq(struct remote *r, uint32_t from, uint32_t to, unsigned items,
    remote_on_place on_place, void *arg, struct err *err)
{
	struct scan_job job = { .on_place = on_place, .arg = arg };
	struct mailimap_selection_info *info = r->imap->imap_selection_info;
	int result;

	/* Sequence numbers that are not there are an error to the server. */
	if (info == NULL || info->sel_exists == 0)
		return session_check(r, err);
	if (from == 0)
		from = 1;
	if (r->is_exists_known) {
		if (from > info->sel_exists)
			return session_check(r, err);
		if (to > info->sel_exists)
			to = 0;
	}
	result = run(r, "FETCH", from, to, items, &job, err);
	place_text_release(&job.text);
	return result;
}
