/*
 * status.c - has anything changed in these folders?
 *
 * Runs in: hot, pool and job children.  Blocks as the wire does.
 *
 * One tag a folder, all in one flight: one round trip for any number of them,
 * without an extension (R-SYNC-2).  A reply belongs to the folder whose tag
 * ends it; the name in it is never looked at.  A LIST may open the flight
 * (list.c).
 */
#include "imap/status.h"

#include "base/text.h"
#include "imap/command.h"
#include "imap/fallback.h"

#define STATUS_TEXT_MAX ((uint64_t)64 << 20)
#define FLIGHT_BYTES 16384 /* bounds what waits in socket buffers */

/* "MAILBOXID (F1)", as sanitize_list.c lets it through. */
static void
read_object_id(struct imap_status *status, const char *text)
{
	static const char name[] = "MAILBOXID (";
	size_t len;

	if (text == NULL || strncmp(text, name, sizeof(name) - 1) != 0)
		return;
	text += sizeof(name) - 1;
	len = strcspn(text, ")");
	if (len < sizeof(status->object_id))
		memcpy(status->object_id, text, len);
}

static void
read_item(struct imap_status *status, struct mailimap_status_info *item)
{
	struct mailimap_extension_data *ext = item->st_ext_data;

	switch (item->st_att) {
	case MAILIMAP_STATUS_ATT_MESSAGES:
		status->messages = item->st_value;
		break;
	case MAILIMAP_STATUS_ATT_UIDNEXT:
		status->uidnext = item->st_value;
		break;
	case MAILIMAP_STATUS_ATT_UIDVALIDITY:
		status->uidvalidity = item->st_value;
		break;
	default:
		if (ext != NULL &&
		    ext->ext_extension == &mailimap_extension_condstore &&
		    ext->ext_type == MAILIMAP_CONDSTORE_TYPE_STATUS_INFO)
			status->highestmodseq =
			    ((struct mailimap_condstore_status_info *)
				    ext->ext_data)->cs_highestmodseq_value;
		else if (ext != NULL)
			read_object_id(status, fallback_status_item(ext));
	}
}

static void
read_status(struct imap *r, struct imap_status *status)
{
	struct mailimap_mailbox_data_status *data =
	    r->imap->imap_response_info->rsp_status;
	clistiter *i;

	if (data == NULL || data->st_info_list == NULL)
		return;
	for (i = clist_begin(data->st_info_list); i != NULL;
	     i = clist_next(i)) {
		read_item(status, clist_content(i));
		status->is_known = true; /* not for an empty list (L035) */
	}
}

static const char *
status_items(struct imap *r)
{
	static const char *const items[2][2] = {
		{ "MESSAGES UIDNEXT UIDVALIDITY",
		    "MESSAGES UIDNEXT UIDVALIDITY MAILBOXID" },
		{ "MESSAGES UIDNEXT UIDVALIDITY HIGHESTMODSEQ",
		    "MESSAGES UIDNEXT UIDVALIDITY HIGHESTMODSEQ MAILBOXID" },
	};
	unsigned caps = r->is_status_plain ? 0 : r->caps;

	return items[(caps & IMAP_CONDSTORE) != 0]
		    [(caps & IMAP_OBJECTID) != 0];
}

int
status_add(struct imap *r, struct buf *out, const char *const *wires,
    size_t n, size_t *n_added_r, struct err *err)
{
	size_t i;

	for (i = 0; i < n && out->len < FLIGHT_BYTES; i++) {
		if (out->len > 0)
			buf_adds(out, "\r\n");
		buf_addf(out, "%d STATUS ", ++r->last_tag);
		if (command_add_string(out, wires[i], err) == -1)
			return -1;
		buf_addf(out, " (%s)", status_items(r));
	}
	*n_added_r = i;
	return 0;
}

int
status_read(struct imap *r, struct imap_status *status_r, size_t n,
    int first_tag, size_t *n_bad_r, struct err *err)
{
	struct reply reply;
	size_t i;

	*n_bad_r = 0;
	for (i = 0; i < n; i++) {
		struct imap_status *status = &status_r[i];
		struct err said = ERR_INIT;

		memset(status, 0, sizeof(*status));
		stream_set_limits(r->stream, 65536, STATUS_TEXT_MAX);
		stream_set_deadline(r->stream, r->command_msecs);
		if (command_reply(r, first_tag + (int)i, &reply, err) == -1)
			return -1;
		status->is_answered = true;
		if (reply_check_object(r, &reply, "STATUS", &said) == 0) {
			read_status(r, status);
			continue;
		}
		if (said.kind != ERR_SERVER) {
			*err = said;
			return -1;
		}
		if (reply.status == REPLY_BAD)
			(*n_bad_r)++;
		text_clean_line(status->no_text, sizeof(status->no_text),
		    reply.text, strlen(reply.text));
	}
	return 0;
}

static int
status_run(struct imap *r, const char *const *wires, size_t n,
    struct imap_status *status_r, size_t *n_bad_r, struct err *err)
{
	struct buf out = BUF_INIT;
	size_t done, sent, n_bad;
	int first_tag, result = 0;

	*n_bad_r = 0;
	for (done = 0; done < n && result == 0; done += sent) {
		buf_reset(&out);
		first_tag = r->last_tag + 1;
		result = status_add(r, &out, wires + done, n - done, &sent,
		    err);
		if (result == 0)
			result = command_send(r, &out, err);
		if (result == 0)
			result = status_read(r, status_r + done, sent,
			    first_tag, &n_bad, err);
		if (result == 0)
			*n_bad_r += n_bad;
	}
	buf_release(&out);
	return result;
}

bool
status_was_refused(struct imap *r, size_t n, size_t n_bad)
{
	if (n == 0 || n_bad < n || r->is_status_plain ||
	    !(r->caps & (IMAP_CONDSTORE | IMAP_OBJECTID)))
		return false;
	r->is_status_plain = true;
	return true;
}

int
imap_status(struct imap *r, const char *const *wires, size_t n,
    struct imap_status *status_r, struct err *err)
{
	size_t n_bad;

	if (n == 0)
		return imap_check(r, err);
	memset(status_r, 0, n * sizeof(*status_r));
	if (status_run(r, wires, n, status_r, &n_bad, err) == -1)
		return -1;
	if (!status_was_refused(r, n, n_bad))
		return 0;
	return status_run(r, wires, n, status_r, &n_bad, err);
}
