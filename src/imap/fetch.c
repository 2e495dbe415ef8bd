/*
 * fetch.c - message bodies as they arrive.
 *
 * Runs in: hot, pool and job children.  Blocks as the wire does.
 *
 * Two commands are in flight, so that the server never waits for us.  The
 * bytes of a body come before it is known whose they are; the FETCH line that
 * ends them tells.  A line without a body may be news of the flags of that
 * message, so "has no body" is only said when all commands are answered.
 */
#include "base/xmem.h"
#include "imap/changes.h"
#include "imap/command.h"

#define FETCH_TEXT_MAX ((uint64_t)64 << 20)
#define IN_FLIGHT 2
#define PER_COMMAND 200
#define SIZE_LIES_MAX 3 /* proven ones, in a session */

struct wanted {
	uint32_t uid;
	enum wanted_state {
		WANTED_OPEN,
		WANTED_SEEN,  /* mentioned, without a body */
		WANTED_DOUBT, /* to be asked for alone */
		WANTED_HELD,  /* its bytes are there, the tagged line is not */
		WANTED_DONE,
	} state;
	bool is_too_large;
	struct place place; /* WANTED_SEEN, WANTED_HELD */
	char *keywords;
};

struct fetch_job {
	struct imap *r;
	const struct imap_sink *sink;
	struct wanted *wanted; /* by uid */
	size_t n;
	struct place_text text;
	uint64_t body_bytes; /* of the message that is coming in */
	bool is_ended;	     /* by the sink */
	bool is_cut;	     /* answers were left out */
	bool is_alone;	     /* one message is asked for */
	bool is_holding;     /* the sink has its bytes; no others may come */
};

static struct wanted *
fetch_find(struct fetch_job *job, uint32_t uid)
{
	size_t from = 0, to = job->n, at;

	while (from < to) {
		at = from + (to - from) / 2;
		if (job->wanted[at].uid == uid)
			return &job->wanted[at];
		if (job->wanted[at].uid < uid)
			from = at + 1;
		else
			to = at;
	}
	return NULL;
}

static void
fetch_end(struct fetch_job *job)
{
	job->is_ended = true;
	stream_fail(job->r->stream, ERR_STOPPED, "the caller ended the fetch");
}

/* For libetpan: false ends the parse. */
static bool
fetch_on_bytes(int type, struct mailimap_msg_att_body_section *section,
    const char *bytes, size_t len, void *arg)
{
	struct fetch_job *job = arg;

	(void)type;
	(void)section;
	if (job->is_ended || stream_error(job->r->stream)->kind != ERR_NONE)
		return false;
	if (job->is_holding) {
		stream_fail(job->r->stream, ERR_PROTOCOL,
		    "more than the one message that was asked for");
		return false;
	}
	job->body_bytes += len;
	if (job->body_bytes > job->r->max_literal) {
		stream_fail(job->r->stream, ERR_PROTOCOL,
		    "a message larger than allowed");
		return false;
	}
	if (job->sink->bytes(job->sink->arg, bytes, len) == -1) {
		fetch_end(job);
		return false;
	}
	return true;
}

static void
fetch_drop(struct fetch_job *job)
{
	if (job->sink->drop != NULL)
		job->sink->drop(job->sink->arg);
	else
		stream_fail(job->r->stream, ERR_PROTOCOL,
		    "a message body that was not asked for");
}

static void
fetch_remember(
    struct wanted *w, enum wanted_state state, const struct place *place)
{
	w->state = state;
	free(w->keywords);
	w->keywords = xstrdup(place->flags.keywords);
	w->place = *place;
	w->place.flags.keywords = w->keywords;
}

/* Servers whose sizes are wrong while their literals are right are many: some
 * such messages, and the others of the session are taken at their bytes. */
static bool
is_in_doubt(const struct fetch_job *job, const struct place *place,
    uint64_t bytes)
{
	return !job->sink->is_header_only && place->size != 0 &&
	    place->size != bytes && job->r->n_size_lies < SIZE_LIES_MAX;
}

/* A body has come, with all that stands behind it. */
static void
take_body(struct fetch_job *job, struct wanted *w, const struct place *place,
    uint64_t bytes)
{
	if (is_in_doubt(job, place, bytes) && !job->is_alone) {
		w->state = WANTED_DOUBT;
		fetch_drop(job);
	} else if (is_in_doubt(job, place, bytes) && !place->has_flags) {
		stream_fail(job->r->stream, ERR_PROTOCOL, "a message did not end "
		    "where its announced length said");
	} else if (is_in_doubt(job, place, bytes)) {
		fetch_remember(w, WANTED_HELD, place);
		job->is_holding = true;
	} else {
		w->state = WANTED_DONE;
		if (job->sink->done(job->sink->arg, place, true) == -1)
			fetch_end(job);
	}
}

static void
fetch_on_message(struct imap *r, struct mailimap_msg_att *att, void *arg)
{
	struct sanitize_notes *notes = stream_notes(r->stream);
	struct fetch_job *job = arg;
	struct wanted *w;
	struct place place;
	bool has_body, is_too_large = notes->is_too_large;
	uint64_t bytes = job->body_bytes;

	job->body_bytes = 0;
	notes->is_too_large = false;
	if (job->is_ended || stream_error(r->stream)->kind != ERR_NONE)
		return;
	place_read(&place, &job->text, att, &has_body);
	w = place.uid != 0 ? fetch_find(job, place.uid) : NULL;
	if (w == NULL || w->state >= WANTED_DOUBT) {
		if (bytes > 0)
			fetch_drop(job);
		else
			r->is_disturbed = true;
		return;
	}
	w->is_too_large |= is_too_large;
	if (bytes == 0 && (!has_body || place.size > 0))
		fetch_remember(w, WANTED_SEEN, &place);
	else
		take_body(job, w, &place, bytes);
}

static int
compare_wanted(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return x->uid < y->uid ? -1 : x->uid > y->uid;
}

static int
fetch_compare_uids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* One command for the next UIDs; returns how many, or -1. */
static ssize_t
send_one(struct fetch_job *job, uint32_t *uids, size_t n, int *tag_r,
    struct err *err)
{
	struct imap *r = job->r;
	struct buf out = BUF_INIT;
	size_t taken;
	int result;

	qsort(uids, n, sizeof(*uids), fetch_compare_uids);
	*tag_r = command_begin(r, &out);
	buf_adds(&out, "UID FETCH ");
	taken = command_add_set(&out, uids, n);
	buf_addf(&out, " (UID FLAGS INTERNALDATE RFC822.SIZE%s BODY.PEEK[%s])",
	    r->caps & IMAP_CONDSTORE ? " MODSEQ" : "",
	    job->sink->is_header_only ? "HEADER" : "");
	result = command_send(r, &out, err);
	buf_release(&out);
	return result == 0 ? (ssize_t)taken : -1;
}

static int
read_one(struct fetch_job *job, int tag, struct err *refused, struct err *err)
{
	struct imap *r = job->r;
	struct err said = ERR_INIT;
	struct reply reply;
	int result;

	stream_set_limits(r->stream, r->max_literal, FETCH_TEXT_MAX);
	stream_set_stall(r->stream, r->body_msecs > 0 &&
	    r->body_msecs < r->command_msecs ? r->body_msecs :
	    r->command_msecs);
	result = command_reply(r, tag, &reply, err);
	if (result == -1)
		return -1;
	job->is_cut |= stream_notes(r->stream)->is_cut;
	if (reply_check_object(r, &reply, "UID FETCH", &said) == 0)
		return 0;
	if (said.kind != ERR_SERVER) {
		*err = said;
		return -1;
	}
	*refused = said; /* the other command in flight goes on */
	return 0;
}

static int
fetch_run(struct fetch_job *job, uint32_t *uids, size_t n, size_t per_command,
    struct err *err)
{
	struct err refused = ERR_INIT;
	int tags[IN_FLIGHT];
	size_t sent = 0, n_flying = 0;

	while (n_flying > 0 || (sent < n && refused.kind == ERR_NONE)) {
		while (n_flying < IN_FLIGHT && sent < n &&
		    refused.kind == ERR_NONE) {
			size_t some = n - sent < per_command ? n - sent :
							       per_command;
			ssize_t taken = send_one(job, uids + sent, some,
			    &tags[n_flying], err);

			if (taken == -1)
				return -1;
			n_flying++;
			sent += (size_t)taken;
		}
		if (read_one(job, tags[0], &refused, err) == -1)
			return -1;
		tags[0] = tags[1];
		n_flying--;
	}
	if (refused.kind == ERR_NONE)
		return 0;
	*err = refused;
	return -1;
}

/* Asks for one message alone; its bytes count once its tagged OK is there. */
static int
ask_alone(struct fetch_job *job, struct wanted *w, struct err *err)
{
	struct err refused = ERR_INIT;
	uint32_t uid = w->uid;
	int tag;

	w->state = WANTED_OPEN;
	job->is_alone = true;
	if (send_one(job, &uid, 1, &tag, err) == -1 ||
	    read_one(job, tag, &refused, err) == -1)
		return -1;
	if (refused.kind != ERR_NONE) {
		*err = refused;
		return -1;
	}
	return 0;
}

/* What is held was asked for alone, and its command has been answered. */
static int
settle_held(struct fetch_job *job, struct wanted *w, struct err *err)
{
	if (w->state != WANTED_HELD)
		return 0;
	job->r->n_size_lies++;
	job->is_holding = false;
	w->state = WANTED_DONE;
	if (job->sink->done(job->sink->arg, &w->place, true) == 0)
		return 0;
	fetch_end(job);
	return imap_die(job->r, stream_error(job->r->stream), err);
}

static int
settle_doubts(struct fetch_job *job, struct err *err)
{
	size_t i;

	for (i = 0; i < job->n; i++) {
		struct wanted *w = &job->wanted[i];

		if ((w->state == WANTED_DOUBT &&
			ask_alone(job, w, err) == -1) ||
		    settle_held(job, w, err) == -1)
			return -1;
	}
	return 0;
}

/* Those that were mentioned and never got a body (L136, L046). */
static int
report_bodiless(struct fetch_job *job, struct err *err)
{
	size_t i;

	for (i = 0; i < job->n; i++) {
		struct wanted *w = &job->wanted[i];

		if (w->state != WANTED_SEEN)
			continue;
		if (w->is_too_large && job->sink->too_large != NULL) {
			job->sink->too_large(job->sink->arg, w->uid);
			continue;
		}
		if (job->sink->done(job->sink->arg, &w->place, false) == -1) {
			fetch_end(job);
			return imap_die(job->r,
			    stream_error(job->r->stream), err);
		}
	}
	return 0;
}

void
imap_set_patience(struct imap *r, int64_t msecs)
{
	r->body_msecs = msecs;
}

int
imap_fetch(struct imap *r, const uint32_t *uids, size_t n,
    size_t per_command, const struct imap_sink *sink, struct err *err)
{
	struct fetch_job job = { .r = r, .sink = sink, .n = n,
		.is_alone = n == 1 };
	uint32_t *rest;
	size_t i;
	int result;

	if (n == 0)
		return imap_check(r, err);
	stream_notes(r->stream)->is_too_large = false;
	rest = xreallocarray(NULL, n, sizeof(*rest));
	job.wanted = xcalloc(n, sizeof(*job.wanted));
	for (i = 0; i < n; i++)
		rest[i] = job.wanted[i].uid = uids[i];
	qsort(job.wanted, n, sizeof(*job.wanted), compare_wanted);
	r->on_message = fetch_on_message;
	r->on_message_arg = &job;
	mailimap_set_msg_body_handler(r->imap, fetch_on_bytes, &job);
	result = fetch_run(
	    &job, rest, n, per_command > 0 ? per_command : PER_COMMAND, err);
	if (result == 0)
		result = settle_doubts(&job, err);
	mailimap_set_msg_body_handler(r->imap, NULL, NULL);
	r->on_message = NULL;
	if (result == 0 && job.is_cut)
		result = err_set(err, ERR_SERVER, "%s: UID FETCH: more "
		    "untagged answers than can be held", r->host);
	if (result == 0)
		result = report_bodiless(&job, err);
	for (i = 0; i < n; i++)
		free(job.wanted[i].keywords);
	free(job.wanted);
	free(rest);
	place_text_release(&job.text);
	return result;
}

/* --- is it really that large? -------------------------------------------- */

struct probe {
	uint32_t uid;
	bool has_answer;
	uint64_t bytes;
};

static bool
on_probe_bytes(int type, struct mailimap_msg_att_body_section *section,
    const char *bytes, size_t len, void *arg)
{
	struct probe *probe = arg;

	(void)type;
	(void)section;
	(void)bytes;
	probe->bytes += len;
	return true;
}

static void
fetch_on_probe(struct imap *r, struct mailimap_msg_att *att, void *arg)
{
	struct place_text text = { .keywords = BUF_INIT };
	struct probe *probe = arg;
	struct place place;
	bool has_body;

	place_read(&place, &text, att, &has_body);
	if (place.uid == probe->uid && has_body)
		probe->has_answer = true;
	else
		r->is_disturbed = true;
	place_text_release(&text);
}

/* One byte behind the limit is asked for: none is there if the size lied. */
int
imap_is_too_large(struct imap *r, uint32_t uid, bool *yes_r,
    struct err *err)
{
	struct probe probe = { .uid = uid };
	struct buf out = BUF_INIT;
	struct err said = ERR_INIT;
	struct reply reply;
	int tag = command_begin(r, &out), result;

	*yes_r = true;
	buf_addf(&out, "UID FETCH %u (UID BODY.PEEK[]<%llu.1>)", uid,
	    (unsigned long long)r->max_literal);
	stream_set_limits(r->stream, 65536, 65536);
	result = command_send(r, &out, err);
	buf_release(&out);
	if (result == -1)
		return -1;
	r->on_message = fetch_on_probe;
	r->on_message_arg = &probe;
	mailimap_set_msg_body_handler(r->imap, on_probe_bytes, &probe);
	result = command_reply(r, tag, &reply, err);
	mailimap_set_msg_body_handler(r->imap, NULL, NULL);
	r->on_message = NULL;
	if (result == -1)
		return -1;
	if (reply_check(r, &reply, "UID FETCH", &said) == 0)
		*yes_r = !probe.has_answer || probe.bytes > 0;
	else if (said.kind != ERR_SERVER) {
		*err = said;
		return -1;
	}
	return 0;
}
