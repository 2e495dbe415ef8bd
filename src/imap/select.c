/*
 * select.c - one folder opened, and what happened in it since.
 *
 * Runs in: hot, pool and job children.  Blocks as the wire does.
 *
 * The library's QRESYNC form lacks its parentheses and is then silently
 * ignored by servers, so the command is our own.  ENABLE goes along with the
 * first SELECT that needs it.
 */
#include "imap/changes.h"
#include "imap/command.h"

#include <strings.h>

#define SELECT_TEXT_MAX ((uint64_t)256 << 20)

enum form { FORM_PLAIN, FORM_CONDSTORE, FORM_QRESYNC };

static enum form
best_form(struct imap *r, const struct cursor *known)
{
	if (r->is_select_plain || !(r->caps & IMAP_CONDSTORE))
		return FORM_PLAIN;
	if (!(r->caps & IMAP_QRESYNC) || r->enable == ENABLE_OFF ||
	    (r->enable == ENABLE_SENT && !r->is_qresync_on))
		return FORM_CONDSTORE;
	if (known == NULL || known->uidvalidity == 0 ||
	    known->highestmodseq == 0)
		return FORM_CONDSTORE;
	return FORM_QRESYNC;
}

/*
 * What the server still has to say of the folder before must not be taken for
 * news of this one: its answer ends with a tag of its own.
 */
static void
add_unselect(struct imap *r, struct buf *out)
{
	if (!r->is_selected || !imap_has(r, "UNSELECT"))
		return;
	r->unselect_tag = ++r->last_tag;
	buf_addf(out, "%d UNSELECT\r\n", r->unselect_tag);
}

/* Only while no folder is selected. */
static void
add_enable(struct imap *r, struct buf *out)
{
	if (r->enable != ENABLE_UNTRIED || !(r->caps & IMAP_QRESYNC))
		return;
	r->enable = ENABLE_SENT;
	r->enable_tag = ++r->last_tag;
	buf_addf(out, "%d ENABLE QRESYNC\r\n", r->enable_tag);
}

static int
add_select(struct imap *r, struct buf *out, const char *wire, enum form form,
    const struct cursor *known, int *tag_r, struct err *err)
{
	buf_reset(out);
	add_unselect(r, out);
	if (!r->is_select_plain)
		add_enable(r, out);
	*tag_r = ++r->last_tag;
	buf_addf(out, "%d SELECT ", *tag_r);
	if (command_add_string(out, wire, err) == -1)
		return -1;
	if (form == FORM_CONDSTORE)
		buf_adds(out, " (CONDSTORE)");
	if (form == FORM_QRESYNC) {
		buf_addf(out, " (QRESYNC (%u %llu", known->uidvalidity,
		    (unsigned long long)known->highestmodseq);
		/* The UIDs we know bound what the server may name. */
		if (known->uidnext > 1)
			buf_addf(out, " 1:%u", known->uidnext - 1);
		buf_adds(out, "))");
	}
	return 0;
}

static void
forget_selection(struct imap *r)
{
	if (r->imap->imap_selection_info != NULL)
		mailimap_selection_info_free(r->imap->imap_selection_info);
	r->imap->imap_selection_info = mailimap_selection_info_new();
	r->imap->imap_state = MAILIMAP_STATE_AUTHENTICATED;
	r->is_selected = false;
	r->is_exists_known = true;
}

static uint64_t
told_modseq(struct imap *r)
{
	clist *list = r->imap->imap_response_info->rsp_extension_list;
	uint64_t modseq = 0;
	clistiter *i;

	for (i = clist_begin(list); i != NULL; i = clist_next(i)) {
		struct mailimap_extension_data *data = clist_content(i);
		struct mailimap_condstore_resptextcode *code = data->ext_data;

		if (data->ext_extension == &mailimap_extension_condstore &&
		    data->ext_type ==
			MAILIMAP_CONDSTORE_TYPE_RESP_TEXT_CODE &&
		    code->cs_type ==
			MAILIMAP_CONDSTORE_RESPTEXTCODE_HIGHESTMODSEQ)
			modseq = code->cs_data.cs_modseq_value;
	}
	return modseq;
}

static void
select_take(struct imap *r, struct imap_selected *selected_r)
{
	struct mailimap_selection_info *info = r->imap->imap_selection_info;

	memset(selected_r, 0, sizeof(*selected_r));
	selected_r->exists = info->sel_exists;
	selected_r->uidnext = info->sel_uidnext;
	selected_r->uidvalidity = info->sel_uidvalidity;
	selected_r->is_read_only = info->sel_perm == MAILIMAP_MAILBOX_READONLY;
	if (r->caps & IMAP_CONDSTORE)
		selected_r->highestmodseq = told_modseq(r);
	r->is_selected = true;
	r->is_disturbed = false;
	r->exists_told = info->sel_exists;
	r->imap->imap_state = MAILIMAP_STATE_SELECTED;
}

static int
select_run(struct imap *r, const char *wire, enum form form,
    const struct cursor *known, struct reply *reply, struct err *err)
{
	struct buf out = BUF_INIT;
	int tag, result;

	stream_set_limits(r->stream, 65536, SELECT_TEXT_MAX);
	result = add_select(r, &out, wire, form, known, &tag, err);
	if (result == 0)
		forget_selection(r);
	if (result == 0)
		result = command_send(r, &out, err);
	if (result == 0)
		stream_set_stall(r->stream, r->command_msecs);
	if (result == 0)
		stream_set_grace(r->stream, r->select_msecs);
	buf_release(&out);
	return result == 0 ? command_reply(r, tag, reply, err) : -1;
}

/* NetEase says so when it has seen no ID (L135). */
static bool
wants_id(struct imap *r, const struct reply *reply)
{
	return reply->status == REPLY_NO && !r->has_retried_id &&
	    strncasecmp(reply->text, "SELECT Unsafe Login", 19) == 0;
}

int
imap_select(struct imap *r, const char *wire, const struct cursor *known,
    struct imap_selected *selected_r, struct imap_changes *changes,
    struct err *err)
{
	enum form form = best_form(r, known);
	struct reply reply;
	int result;

	/* Before a tag is given out that nobody would answer. */
	if (strpbrk(wire, "\r\n") != NULL)
		return err_set(err, ERR_PERMANENT,
		    "a line end in the name of a folder");
	if (changes != NULL)
		changes->vanished_limit = known != NULL && known->uidnext > 1 ?
		    known->uidnext - 1 : 0;
	r->changes = changes;
	result = select_run(r, wire, form, known, &reply, err);
	if (result == 0 && wants_id(r, &reply)) {
		r->has_retried_id = true;
		r->id_later = ++r->last_tag;
		result = select_run(r, wire, form, known, &reply, err);
	}
	/* Whatever of it the server does not know, a bare SELECT it does. */
	while (result == 0 && reply.status == REPLY_BAD && form != FORM_PLAIN) {
		if (form == FORM_QRESYNC)
			r->enable = ENABLE_OFF;
		else
			r->is_select_plain = true;
		form = best_form(r, known);
		result = select_run(r, wire, form, known, &reply, err);
	}
	r->changes = NULL;
	if (result == -1 || reply_check_object(r, &reply, "SELECT", err) == -1)
		return -1;
	select_take(r, selected_r);
	if (changes != NULL && known != NULL &&
	    known->uidvalidity != selected_r->uidvalidity)
		changes->n_changed = changes->n_vanished = 0; /* void */
	if (changes != NULL)
		changes_finish(changes, UINT32_MAX);
	return 0;
}

/* CLOSE would expunge; without UNSELECT the next SELECT does it. */
int
imap_unselect(struct imap *r, struct err *err)
{
	if (imap_check(r, err) == -1)
		return -1;
	if (!r->is_selected)
		return 0;
	if (imap_has(r, "UNSELECT") || imap_has(r, "IMAP4rev2")) {
		if (command_simple(r, "UNSELECT", err) == -1)
			return -1;
	}
	forget_selection(r);
	return 0;
}

bool
imap_is_disturbed(const struct imap *r)
{
	return r->is_disturbed;
}

int
imap_changed_since(struct imap *r, uint32_t from, uint32_t to,
    uint64_t modseq, struct imap_changes *changes, struct err *err)
{
	struct buf out = BUF_INIT;
	struct reply reply;
	int tag = command_begin(r, &out), result;

	/* A number and not "*": Cyrus then forgets the topmost (L072). */
	buf_addf(&out, "UID FETCH %u:%u (UID FLAGS MODSEQ) "
		       "(CHANGEDSINCE %llu%s)",
	    from > 0 ? from : 1, to > 0 ? to : UINT32_MAX,
	    (unsigned long long)modseq, r->is_qresync_on ? " VANISHED" : "");
	changes->vanished_limit = to;
	stream_set_limits(r->stream, 65536, SELECT_TEXT_MAX);
	result = command_send(r, &out, err);
	buf_release(&out);
	if (result == -1)
		return -1;
	stream_set_stall(r->stream, r->command_msecs);
	r->changes = changes;
	result = command_reply(r, tag, &reply, err);
	r->changes = NULL;
	if (result == -1 ||
	    reply_check_object(r, &reply, "UID FETCH", err) == -1)
		return -1;
	changes_finish(changes, UINT32_MAX);
	return 0;
}

int
imap_noop(struct imap *r, struct imap_changes *changes, struct err *err)
{
	int result;

	stream_set_limits(r->stream, 65536, SELECT_TEXT_MAX);
	r->changes = changes;
	result = command_simple(r, "NOOP", err);
	r->changes = NULL;
	if (result == -1)
		return -1;
	if (changes != NULL) {
		changes_finish(changes, UINT32_MAX);
		changes->exists = r->imap->imap_selection_info != NULL ?
		    r->imap->imap_selection_info->sel_exists : 0;
	}
	return 0;
}
