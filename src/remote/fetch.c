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
#include "remote/changes.h"
#include "remote/command.h"

#define FETCH_TEXT_MAX ((uint64_t)64 << 20)
#define IN_FLIGHT 2
#define PER_COMMAND 200

struct wanted {
	uint32_t uid;
	enum { WANTED_OPEN, WANTED_SEEN, WANTED_DONE } state;
	struct place place; /* WANTED_SEEN; without keywords */
	char *keywords;
};

struct fetch_job {
	struct remote *r;
	const struct remote_sink *sink;
	struct wanted *wanted; /* by uid */
	size_t n;
	struct place_text text;
	uint64_t body_bytes; /* of the message that is coming in */
	bool is_ended;	     /* by the sink */
	bool is_cut;	     /* answers were left out */
};

static struct wanted *
find(struct fetch_job *job, uint32_t uid)
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
end(struct fetch_job *job)
{
	job->is_ended = true;
	wire_fail(job->r->wire, ERR_STOPPED, "the caller ended the fetch");
}

/* For libetpan: false ends the parse. */
static bool
on_bytes(int type, struct mailimap_msg_att_body_section *section,
    const char *bytes, size_t len, void *arg)
{
	struct fetch_job *job = arg;

	(void)type;
	(void)section;
	if (job->is_ended || wire_error(job->r->wire)->kind != ERR_NONE)
		return false;
	job->body_bytes += len;
	if (job->body_bytes > job->r->max_literal) {
		wire_fail(job->r->wire, ERR_PROTOCOL,
		    "a message larger than allowed");
		return false;
	}
	if (job->sink->bytes(job->sink->arg, bytes, len) == -1) {
		end(job);
		return false;
	}
	return true;
}

static void
drop(struct fetch_job *job)
{
	if (job->sink->drop != NULL)
		job->sink->drop(job->sink->arg);
	else
		wire_fail(job->r->wire, ERR_PROTOCOL,
		    "a message body that was not asked for");
}

static void
remember(struct wanted *w, const struct place *place)
{
	w->state = WANTED_SEEN;
	free(w->keywords);
	w->keywords = xstrdup(place->flags.keywords);
	w->place = *place;
	w->place.flags.keywords = w->keywords;
}

static void
on_message(struct remote *r, struct mailimap_msg_att *att, void *arg)
{
	struct fetch_job *job = arg;
	struct wanted *w;
	struct place place;
	bool has_body, has_bytes = job->body_bytes > 0;

	job->body_bytes = 0;
	if (job->is_ended || wire_error(r->wire)->kind != ERR_NONE)
		return;
	place_read(&place, &job->text, att, &has_body);
	w = place.uid != 0 ? find(job, place.uid) : NULL;
	if (w == NULL || w->state == WANTED_DONE) {
		if (has_bytes)
			drop(job);
		else
			r->is_disturbed = true;
		return;
	}
	if (!has_bytes && (!has_body || place.size > 0)) {
		remember(w, &place);
		return;
	}
	w->state = WANTED_DONE;
	if (job->sink->done(job->sink->arg, &place, true) == -1)
		end(job);
}

static int
compare_wanted(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return x->uid < y->uid ? -1 : x->uid > y->uid;
}

static int
compare_uids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* One command for the next UIDs; returns how many, or -1. */
static ssize_t
send_one(struct fetch_job *job, uint32_t *uids, size_t n, int *tag_r,
    struct err *err)
{
	struct remote *r = job->r;
	struct buf out = BUF_INIT;
	size_t taken;
	int result;

	qsort(uids, n, sizeof(*uids), compare_uids);
	*tag_r = command_begin(r, &out);
	buf_adds(&out, "UID FETCH ");
	taken = command_add_set(&out, uids, n);
	buf_addf(&out, " (UID FLAGS INTERNALDATE RFC822.SIZE%s BODY.PEEK[%s])",
	    r->caps & REMOTE_CONDSTORE ? " MODSEQ" : "",
	    job->sink->is_header_only ? "HEADER" : "");
	result = command_send(r, &out, err);
	buf_release(&out);
	return result == 0 ? (ssize_t)taken : -1;
}

static int
read_one(struct fetch_job *job, int tag, struct err *refused, struct err *err)
{
	struct remote *r = job->r;
	struct err said = ERR_INIT;
	struct reply reply;
	int result;

	wire_set_limits(r->wire, r->max_literal, FETCH_TEXT_MAX);
	wire_set_stall(r->wire, r->body_msecs > 0 &&
	    r->body_msecs < r->command_msecs ? r->body_msecs :
	    r->command_msecs);
	result = command_reply(r, tag, &reply, err);
	if (result == -1)
		return -1;
	job->is_cut |= wire_notes(r->wire)->is_cut;
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
run(struct fetch_job *job, uint32_t *uids, size_t n, size_t per_command,
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

/* Those that were mentioned and never got a body (L136, L046). */
static int
report_bodiless(struct fetch_job *job, struct err *err)
{
	size_t i;

	for (i = 0; i < job->n; i++) {
		struct wanted *w = &job->wanted[i];

		if (w->state != WANTED_SEEN)
			continue;
		if (job->sink->done(job->sink->arg, &w->place, false) == -1) {
			end(job);
			return session_die(job->r,
			    wire_error(job->r->wire), err);
		}
	}
	return 0;
}

void
remote_set_patience(struct remote *r, int64_t msecs)
{
	r->body_msecs = msecs;
}

int
remote_fetch(struct remote *r, const uint32_t *uids, size_t n,
    size_t per_command, const struct remote_sink *sink, struct err *err)
{
	struct fetch_job job = { .r = r, .sink = sink, .n = n };
	uint32_t *rest;
	size_t i;
	int result;

	if (n == 0)
		return session_check(r, err);
	rest = xreallocarray(NULL, n, sizeof(*rest));
	job.wanted = xcalloc(n, sizeof(*job.wanted));
	for (i = 0; i < n; i++)
		rest[i] = job.wanted[i].uid = uids[i];
	qsort(job.wanted, n, sizeof(*job.wanted), compare_wanted);
	r->on_message = on_message;
	r->on_message_arg = &job;
	mailimap_set_msg_body_handler(r->imap, on_bytes, &job);
	result = run(&job, rest, n,
	    per_command > 0 ? per_command : PER_COMMAND, err);
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
