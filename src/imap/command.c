/*
 * command.c - commands out, replies in.
 *
 * Runs in: hot, pool and job children.  Blocks as the wire does.
 *
 * Everything libetpan gathers in a reply (VANISHED, EXPUNGE, EXISTS) is taken
 * over in one place, gather(), before the next reply replaces it (L072).
 */
#include "config.h"

#include "imap/command.h"

#include "base/text.h"
#include "imap/fallback.h"
#include "imap/changes.h"
#include "imap/words.h"

#define QUESTIONS_MAX 8 /* "+" lines in answer to one command */

int
command_begin(struct imap *r, struct buf *out)
{
	buf_reset(out);
	buf_addf(out, "%d ", ++r->last_tag);
	return r->last_tag;
}

int
command_add_string(struct buf *out, const char *s, struct err *err)
{
	buf_addc(out, '"');
	for (; *s != '\0'; s++) {
		if (*s == '\r' || *s == '\n')
			return err_set(err, ERR_PERMANENT,
			    "a line end in an argument of a command");
		if (*s == '"' || *s == '\\')
			buf_addc(out, '\\');
		buf_addc(out, *s);
	}
	buf_addc(out, '"');
	return 0;
}

size_t
command_add_set(struct buf *out, const uint32_t *uids, size_t n)
{
	size_t i = 0, j;

	while (i < n && out->len < COMMAND_MAX_BYTES - 200) {
		for (j = i + 1; j < n && uids[j] == uids[j - 1] + 1; j++)
			;
		buf_addf(out, "%s%u", i > 0 ? "," : "", uids[i]);
		if (j > i + 1)
			buf_addf(out, ":%u", uids[j - 1]);
		i = j;
	}
	return i;
}

/* Refusals with words that ask to wait; then it is the server that does. */
#define BUSY_IN_ROW 3

static int
send_bytes(struct imap *r, const char *bytes, size_t len, struct err *err)
{
	if (stream_send(r->stream, bytes, len, false) == -1)
		return imap_die(r, stream_error(r->stream), err);
	return 0;
}

/*
 * ID goes with the first command after the login, in the same packet, so that
 * it costs no round trip; some servers refuse SELECT without it (L135).
 */
static int
send_with_id(struct imap *r, const struct buf *out, struct err *err)
{
	struct buf both = BUF_INIT;
	int result;

	buf_addf(&both, "%d ID (\"name\" \"mailherd\" \"version\" "
	    "\"" PACKAGE_VERSION "\" \"vendor\" \"mailherd\" "
	    "\"contact\" \"postmaster\")\r\n", r->id_later);
	buf_add(&both, out->data, out->len);
	r->id_tag = r->id_later;
	r->id_later = 0;
	result = send_bytes(r, both.data, both.len, err);
	buf_release(&both);
	return result;
}

int
command_send(struct imap *r, struct buf *out, struct err *err)
{
	if (imap_check(r, err) == -1)
		return -1;
	buf_adds(out, "\r\n");
	stream_set_deadline(r->stream, r->command_msecs);
	return r->id_later != 0 ? send_with_id(r, out, err) :
				  send_bytes(r, out->data, out->len, err);
}

/* "(CODE] words" of sanitize.c, or "[CODE] words", into "[CODE] words". */
static void
keep_text(struct reply *reply, const char *text, size_t len)
{
	text_clean_line(reply->text, sizeof(reply->text), text, len);
	if (reply->text[0] == '(' && strchr(reply->text, ']') != NULL)
		reply->text[0] = '[';
}

bool
command_is_tagged(const char *line, int tag, struct reply *reply_r)
{
	static const char *const words[] = { "OK ", "NO ", "BAD " };
	char *end;
	size_t i, len;

	if (strtol(line, &end, 10) != tag || end == line || *end != ' ')
		return false;
	line = end + 1;
	for (i = 0; i < 3; i++) {
		len = strlen(words[i]);
		if (strncasecmp(line, words[i], len) != 0)
			continue;
		reply_r->status = (enum reply_status)i;
		line += len;
		keep_text(reply_r, line, strcspn(line, "\r\n"));
		return true;
	}
	return false;
}

static bool
is_any_tag(const char *line)
{
	return line[0] >= '0' && line[0] <= '9';
}

static int
read_failed(struct imap *r, struct err *err)
{
	struct err lost = ERR_INIT;

	if (stream_error(r->stream)->kind != ERR_NONE)
		return imap_die(r, stream_error(r->stream), err);
	err_set(&lost, ERR_NETWORK, "%s: read failed", r->host);
	return imap_die(r, &lost, err);
}

/* "+": the next answer, or an empty one.  No dialogue is that long. */
static int
answer_next(struct imap *r, const char *const **answers, unsigned *asked,
    struct err *err)
{
	const char *answer = *answers != NULL ? **answers : NULL;
	struct err endless = ERR_INIT;

	if (++*asked > QUESTIONS_MAX) {
		err_set(&endless, ERR_PROTOCOL, "%s asks and asks", r->host);
		return imap_die(r, &endless, err);
	}
	if (answer != NULL)
		(*answers)++;
	else
		answer = "\r\n";
	if (stream_send(r->stream, answer, strlen(answer), true) == -1)
		return read_failed(r, err);
	return 0;
}

static int
read_lines(struct imap *r, int tag, const char *const *answers,
    struct reply *reply_r, struct err *err)
{
	struct err confused = ERR_INIT;
	const char *line;
	unsigned asked = 0;

	for (;;) {
		if ((line = mailimap_read_line(r->imap)) == NULL)
			return read_failed(r, err);
		if (command_is_tagged(line, tag, reply_r))
			return 0;
		if (line[0] == '+') {
			if (answer_next(r, &answers, &asked, err) == -1)
				return -1;
		} else if (is_any_tag(line)) {
			err_set(&confused, ERR_PROTOCOL,
			    "%s answered another command than the one asked",
			    r->host);
			return imap_die(r, &confused, err);
		}
	}
}

/* Answers of commands that were sent before the one that is read. */
int
command_settle(struct imap *r, struct err *err)
{
	struct reply reply;

	if (r->id_tag != 0) {
		if (read_lines(r, r->id_tag, NULL, &reply, err) == -1)
			return -1;
		r->id_tag = 0;
	}
	if (r->unselect_tag != 0) {
		if (read_lines(r, r->unselect_tag, NULL, &reply, err) == -1)
			return -1;
		r->unselect_tag = 0;
	}
	if (r->enable_tag != 0) {
		if (read_lines(r, r->enable_tag, NULL, &reply, err) == -1)
			return -1;
		r->enable_tag = 0;
		r->is_qresync_on = reply.status == REPLY_OK &&
		    stream_notes(r->stream)->enabled_qresync;
	}
	return 0;
}

int
command_reply_lines(struct imap *r, int tag, const char *const *answers,
    struct reply *reply_r, struct err *err)
{
	if (command_settle(r, err) == -1)
		return -1;
	return read_lines(r, tag, answers, reply_r, err);
}

static void
notice_exists(struct imap *r)
{
	const struct mailimap_selection_info *info =
	    r->imap->imap_selection_info;

	if (!r->is_selected || info == NULL ||
	    info->sel_exists == r->exists_told)
		return;
	r->exists_told = info->sel_exists;
	r->is_disturbed = true;
}

static void
command_gather(struct imap *r)
{
	struct mailimap_response_info *info = r->imap->imap_response_info;
	clistiter *i;

	if (info == NULL)
		return;
	if (r->changes != NULL)
		r->changes->is_cut |= stream_notes(r->stream)->is_cut;
	else if (stream_notes(r->stream)->is_cut)
		r->is_disturbed = true;
	for (i = clist_begin(info->rsp_extension_list); i != NULL;
	     i = clist_next(i)) {
		struct mailimap_extension_data *data = clist_content(i);

		if (fallback_is_fetch(data))
			stream_notes(r->stream)->n_lost_fetches++;
		if (data->ext_extension == &mailimap_extension_qresync &&
		    data->ext_type == MAILIMAP_QRESYNC_TYPE_VANISHED) {
			struct mailimap_qresync_vanished *v = data->ext_data;

			if (!v->qr_earlier)
				r->is_exists_known = false;
			if (r->changes != NULL)
				changes_add_vanished(r->changes,
				    v->qr_known_uids);
			else
				r->is_disturbed = true;
		}
	}
	if (r->changes != NULL)
		r->changes->n_expunged += (size_t)clist_count(
		    info->rsp_expunged);
	else if (!clist_isempty(info->rsp_expunged))
		r->is_disturbed = true;
	notice_exists(r);
}

static void
command_nothing(size_t current, size_t maximum, void *context)
{
	(void)current;
	(void)maximum;
	(void)context;
}

static void
on_att(struct mailimap_msg_att *att, void *arg)
{
	struct imap *r = arg;

	if (r->on_message != NULL)
		r->on_message(r, att, r->on_message_arg);
	else if (r->changes != NULL)
		changes_add_message(r->changes, att);
}

/* Was the last line of the reply a BAD to `tag`?  libetpan uses one code for
 * it and for a wrong tag. */
static bool
is_bad_reply(struct imap *r, int tag, struct reply *reply_r)
{
	const MMAPString *b = r->imap->imap_stream_buffer;
	size_t end = b->len, from;

	while (end > 0 && (b->str[end - 1] == '\n' || b->str[end - 1] == '\r'))
		end--;
	for (from = end; from > 0 && b->str[from - 1] != '\n'; from--)
		;
	return command_is_tagged(b->str + from, tag, reply_r) &&
	    reply_r->status == REPLY_BAD;
}

static int
not_understood(struct imap *r, struct err *err)
{
	const MMAPString *b = r->imap->imap_stream_buffer;
	struct err confused = ERR_INIT;
	size_t end = b->len, from;

	if (stream_error(r->stream)->kind != ERR_NONE)
		return imap_die(r, stream_error(r->stream), err);
	while (end > 0 && (b->str[end - 1] == '\n' || b->str[end - 1] == '\r'))
		end--;
	for (from = end; from > 0 && b->str[from - 1] != '\n'; from--)
		;
	err_set(&confused, ERR_PROTOCOL,
	    "%s: answer not understood near \"%.80s\"", r->host, b->str + from);
	return imap_die(r, &confused, err);
}

int
command_reply(struct imap *r, int tag, struct reply *reply_r,
    struct err *err)
{
	struct mailimap_response *response = NULL;
	struct mailimap_resp_cond_state *state;
	int code;

	if (command_settle(r, err) == -1)
		return -1;
	/* Without a progress callback the handler is never called. */
	mailimap_set_progress_callback(r->imap, NULL, command_nothing, NULL);
	mailimap_set_msg_att_handler(r->imap, on_att, r);
	r->imap->imap_tag = tag;
	stream_set_budget(r->stream, r->max_reply, r->on_message != NULL);
	if (mailimap_read_line(r->imap) == NULL)
		return read_failed(r, err);
	code = mailimap_parse_response(r->imap, &response);
	stream_set_no_budget(r->stream);
	if (stream_error(r->stream)->kind != ERR_NONE) {
		if (code == MAILIMAP_NO_ERROR)
			mailimap_response_free(response);
		return imap_die(r, stream_error(r->stream), err);
	}
	if (code == MAILIMAP_ERROR_PROTOCOL && is_bad_reply(r, tag, reply_r)) {
		command_gather(r);
		return 0;
	}
	if (code != MAILIMAP_NO_ERROR)
		return not_understood(r, err);
	command_gather(r);
	state = response->rsp_resp_done->rsp_data.rsp_tagged->rsp_cond_state;
	reply_r->status = state->rsp_type == MAILIMAP_RESP_COND_STATE_OK ?
	    REPLY_OK : REPLY_NO;
	reply_r->text[0] = '\0';
	if (r->imap->imap_response != NULL)
		keep_text(reply_r, r->imap->imap_response,
		    strlen(r->imap->imap_response));
	mailimap_response_free(response);
	return 0;
}

int
reply_check(struct imap *r, const struct reply *reply, const char *what,
    struct err *err)
{
	struct err busy = ERR_INIT;

	if (reply->status == REPLY_OK) {
		r->is_slowed |= words_slow_down(reply->text);
		return 0;
	}
	if (words_ask_to_wait(reply->text, r->host, what, &busy))
		return imap_die(r, &busy, err);
	return err_set(err, ERR_SERVER, "%s: %s: %s %s", r->host, what,
	    reply->status == REPLY_NO ? "NO" : "BAD", reply->text);
}

/*
 * At a command about one folder or message, "temporarily unavailable" is about
 * that one, unless several in a row hear such a thing.
 */
int
reply_check_object(struct imap *r, const struct reply *reply,
    const char *what, struct err *err)
{
	struct err busy = ERR_INIT;

	if (reply->status == REPLY_OK)
		r->n_busy = 0;
	else if (!words_ask_to_wait(reply->text, r->host, what, &busy))
		r->n_busy = 0;
	else if (++r->n_busy < BUSY_IN_ROW)
		return err_set(err, ERR_SERVER, "%s: %s: %s %s", r->host,
		    what, reply->status == REPLY_NO ? "NO" : "BAD",
		    reply->text);
	return reply_check(r, reply, what, err);
}

bool
imap_is_busy(const struct imap *r)
{
	return r->n_busy > 0;
}

int
command_simple(struct imap *r, const char *command, struct err *err)
{
	struct buf out = BUF_INIT;
	struct reply reply;
	int tag = command_begin(r, &out), result;

	buf_adds(&out, command);
	result = command_send(r, &out, err);
	buf_release(&out);
	if (result == 0)
		result = command_reply(r, tag, &reply, err);
	return result == 0 ? reply_check(r, &reply, command, err) : -1;
}
