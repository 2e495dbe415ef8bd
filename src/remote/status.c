/*
 * status.c - has anything changed in these folders?
 *
 * Runs in: hot, pool and job children.  Blocks as the wire does.
 *
 * One tag a folder, all in one flight: one round trip for any number of them,
 * without an extension (R-SYNC-2).  A reply belongs to the folder whose tag
 * ends it; the name in it is never looked at.
 */
#include "base/text.h"
#include "remote/command.h"

#define FLIGHT_BYTES 16384 /* bounds what waits in socket buffers */

static void
read_item(struct remote_status *status, struct mailimap_status_info *item)
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
	}
}

static void
read_status(struct remote *r, struct remote_status *status)
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

/* Sends as many as fit into a flight; returns how many, or -1. */
static ssize_t
send_flight(struct remote *r, const char *const *wires, size_t n,
    const char *items, int *first_tag_r, struct err *err)
{
	struct buf out = BUF_INIT;
	size_t i;
	int result = 0;

	*first_tag_r = r->last_tag + 1;
	for (i = 0; i < n && out.len < FLIGHT_BYTES && result == 0; i++) {
		if (i > 0)
			buf_adds(&out, "\r\n");
		buf_addf(&out, "%d STATUS ", ++r->last_tag);
		result = command_add_string(&out, wires[i], err);
		buf_addf(&out, " (%s)", items);
	}
	if (result == 0)
		result = command_send(r, &out, err);
	buf_release(&out);
	return result == 0 ? (ssize_t)i : -1;
}

static int
read_flight(struct remote *r, struct remote_status *status_r, size_t n,
    int first_tag, size_t *n_bad_r, struct err *err)
{
	struct reply reply;
	size_t i;

	for (i = 0; i < n; i++) {
		struct remote_status *status = &status_r[i];
		struct err said = ERR_INIT;

		memset(status, 0, sizeof(*status));
		wire_set_limits(r->wire, 65536, 1 << 20);
		wire_set_deadline(r->wire, r->command_msecs);
		if (command_reply(r, first_tag + (int)i, &reply, err) == -1)
			return -1;
		if (reply.status == REPLY_OK) {
			read_status(r, status);
			continue;
		}
		if (reply_check(r, &reply, "STATUS", &said) == -1 &&
		    said.kind != ERR_SERVER) {
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
run(struct remote *r, const char *const *wires, size_t n, const char *items,
    struct remote_status *status_r, size_t *n_bad_r, struct err *err)
{
	size_t done = 0;
	int first_tag;

	*n_bad_r = 0;
	while (done < n) {
		ssize_t sent = send_flight(r, wires + done, n - done, items,
		    &first_tag, err);

		if (sent == -1 ||
		    read_flight(r, status_r + done, (size_t)sent, first_tag,
			n_bad_r, err) == -1)
			return -1;
		done += (size_t)sent;
	}
	return 0;
}

int
remote_status(struct remote *r, const char *const *wires, size_t n,
    struct remote_status *status_r, struct err *err)
{
	static const char plain[] = "MESSAGES UIDNEXT UIDVALIDITY";
	static const char full[] = "MESSAGES UIDNEXT UIDVALIDITY "
				   "HIGHESTMODSEQ";
	bool is_full = (r->caps & REMOTE_CONDSTORE) && !r->is_status_plain;
	size_t n_bad;

	if (n == 0)
		return session_check(r, err);
	if (run(r, wires, n, is_full ? full : plain, status_r, &n_bad, err) ==
	    -1)
		return -1;
	/* An item the server does not know is BAD (iCloud). */
	if (!is_full || n_bad < n)
		return 0;
	r->is_status_plain = true;
	return run(r, wires, n, plain, status_r, &n_bad, err);
}
