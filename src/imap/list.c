/*
 * list.c - the folders of an account.
 *
 * Runs in: hot, pool and job children.  Blocks as the wire does.
 */
#include "imap/command.h"
#include "imap/names.h"
#include "imap/status.h"

#define LIST_TEXT_MAX ((uint64_t)256 << 20)
/* Once in a while, and a hundred thousand folders are not unheard of. */
#define LIST_SHARE 6

static enum folder_role
role_of_flag(const char *flag)
{
	static const struct {
		const char *flag;
		enum folder_role role;
	} roles[] = {
		{ "Inbox", ROLE_INBOX },
		{ "Sent", ROLE_SENT },
		{ "Drafts", ROLE_DRAFTS },
		{ "Archive", ROLE_ARCHIVE },
		{ "Trash", ROLE_TRASH },
		{ "Junk", ROLE_JUNK },
		{ "Spam", ROLE_JUNK },
		{ "All", ROLE_ALL },
		{ "AllMail", ROLE_ALL },
	};
	size_t i;

	for (i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (strcasecmp(flag, roles[i].flag) == 0)
			return roles[i].role;
	return ROLE_NONE;
}

static void
list_read_flags(
    struct imap_folder *folder, struct mailimap_mbx_list_flags *flags)
{
	clistiter *i;

	folder->is_selectable = true;
	if (flags == NULL)
		return;
	if (flags->mbf_type == MAILIMAP_MBX_LIST_FLAGS_SFLAG &&
	    flags->mbf_sflag == MAILIMAP_MBX_LIST_SFLAG_NOSELECT)
		folder->is_selectable = false;
	for (i = flags->mbf_oflags != NULL ? clist_begin(flags->mbf_oflags) :
					     NULL;
	     i != NULL; i = clist_next(i)) {
		struct mailimap_mbx_list_oflag *flag = clist_content(i);

		if (flag->of_type != MAILIMAP_MBX_LIST_OFLAG_FLAG_EXT ||
		    flag->of_flag_ext == NULL)
			continue;
		if (strcasecmp(flag->of_flag_ext, "NonExistent") == 0 ||
		    strcasecmp(flag->of_flag_ext, "Noselect") == 0)
			folder->is_selectable = false;
		if (folder->role == ROLE_NONE)
			folder->role = role_of_flag(flag->of_flag_ext);
	}
}

static int
compare_folders(const void *a, const void *b)
{
	const struct imap_folder *x = a, *y = b;

	return strcmp(x->wire, y->wire);
}

/* Some servers list a folder twice; the one that says more stays. */
static size_t
without_doubles(struct imap_folder *folders, size_t n)
{
	size_t i, kept = 0;

	qsort(folders, n, sizeof(*folders), compare_folders);
	for (i = 0; i < n; i++) {
		if (kept > 0 &&
		    strcmp(folders[kept - 1].wire, folders[i].wire) == 0) {
			if (folders[kept - 1].role == ROLE_NONE)
				folders[kept - 1].role = folders[i].role;
			continue;
		}
		folders[kept++] = folders[i];
	}
	return kept;
}

static int
compare_paths(const void *a, const void *b)
{
	const struct imap_folder *x = *(struct imap_folder *const *)a;
	const struct imap_folder *y = *(struct imap_folder *const *)b;
	int order = strcmp(x->path, y->path);

	return order != 0 ? order : strcmp(x->wire, y->wire);
}

/* The same name in two spellings, "Entw&APw-rfe" and one in bare bytes: people
 * must be able to say which they mean. */
static void
tell_paths_apart(struct arena *arena, struct imap_folder *folders, size_t n)
{
	struct imap_folder **sorted = ARENA_ARRAY(arena,
	    struct imap_folder *, n + 1);
	const char *path = NULL;
	unsigned count = 1;
	size_t i;

	for (i = 0; i < n; i++)
		sorted[i] = &folders[i];
	qsort(sorted, n, sizeof(*sorted), compare_paths);
	for (i = 0; i < n; i++) {
		if (path == NULL || strcmp(sorted[i]->path, path) != 0) {
			path = sorted[i]->path;
			count = 1;
		} else
			sorted[i]->path = arena_printf(arena, "%s (%u)", path,
			    ++count);
	}
}

/* Copies what libetpan has gathered. */
static void
list_take(struct imap *r, struct arena *arena, struct imap_folder **folders_r,
    size_t *n_r)
{
	clist *list = r->imap->imap_response_info->rsp_mailbox_list;
	struct imap_folder *folders = ARENA_ARRAY(arena,
	    struct imap_folder, (size_t)clist_count(list) + 1);
	clistiter *i;
	size_t n = 0;

	for (i = clist_begin(list); i != NULL; i = clist_next(i)) {
		struct mailimap_mailbox_list *box = clist_content(i);
		struct imap_folder *folder = &folders[n];

		if (box->mb_name[0] == '\0' ||
		    strpbrk(box->mb_name, "\r\n") != NULL)
			continue;
		memset(folder, 0, sizeof(*folder));
		folder->wire = arena_strdup(arena, box->mb_name);
		folder->path = name_for_people(arena, box->mb_name);
		folder->delimiter = box->mb_delimiter;
		list_read_flags(folder, box->mb_flag);
		if (name_is_inbox(folder->wire))
			folder->role = ROLE_INBOX;
		n++;
	}
	*folders_r = folders;
	*n_r = without_doubles(folders, n);
	tell_paths_apart(arena, folders, *n_r);
}

/* What the STATUS commands say that went with the LIST. */
static int
read_along(struct imap *r, struct imap_flight *along, int first_tag,
    struct err *err)
{
	size_t n_bad, n = along->n_answered;

	along->n_answered = 0;
	if (status_read(r, along->status, n, first_tag, &n_bad, err) == -1)
		return -1;
	if (!status_was_refused(r, n, n_bad))
		along->n_answered = n;
	return 0;
}

/* *n_r 0 when the server refused this form of the command or said nothing. */
static int
list_ask(struct imap *r, const char *command, struct imap_flight *along,
    struct arena *arena, struct imap_folder **folders_r, size_t *n_r,
    struct reply *reply, struct err *err)
{
	struct err said = ERR_INIT;
	struct buf out = BUF_INIT;
	int tag = command_begin(r, &out), result = 0;
	uint64_t usual = r->max_reply;

	*n_r = 0;
	buf_adds(&out, command);
	if (along != NULL)
		result = status_add(r, &out, along->wires, along->n,
		    &along->n_answered, err);
	stream_set_limits(r->stream, 65536, LIST_TEXT_MAX);
	if (result == 0)
		result = command_send(r, &out, err);
	buf_release(&out);
	r->max_reply *= LIST_SHARE;
	if (result == 0)
		result = command_reply(r, tag, reply, err);
	r->max_reply = usual;
	if (result == -1)
		return -1;
	r->is_list_cut = stream_notes(r->stream)->is_cut;
	if (along != NULL)
		along->is_listed = true;
	if (reply_check(r, reply, "LIST", &said) == 0) {
		list_take(r, arena, folders_r, n_r);
	} else if (said.kind != ERR_SERVER) {
		*err = said; /* throttled: no other form is tried (L128) */
		return -1;
	}
	return along != NULL ? read_along(r, along, tag + 1, err) : 0;
}

static bool
has_inbox(const struct imap_folder *folders, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (folders[i].role == ROLE_INBOX)
			return true;
	return false;
}

static const char *
richer_form(struct imap *r)
{
	if (imap_has(r, "SPECIAL-USE") && !r->quirks.no_list_extended &&
	    (imap_has(r, "LIST-EXTENDED") || imap_has(r, "IMAP4rev2")))
		return "LIST \"\" \"*\" RETURN (SPECIAL-USE)";
	if (imap_has(r, "XLIST") && !imap_has(r, "SPECIAL-USE"))
		return "XLIST \"\" \"*\"";
	return NULL;
}

bool
imap_list_is_cut(const struct imap *r)
{
	return r->is_list_cut;
}

int
imap_list_with(struct imap *r, struct imap_flight *along,
    struct arena *arena, struct imap_folder **folders_r, size_t *n_r,
    struct err *err)
{
	const char *rich = richer_form(r);
	struct sanitize_notes *notes = stream_notes(r->stream);
	struct reply reply;

	*folders_r = NULL;
	*n_r = 0;
	if (along != NULL)
		memset(along->status, 0, along->n * sizeof(*along->status));
	notes->n_broken_lists = 0;
	if (rich != NULL &&
	    list_ask(r, rich, along, arena, folders_r, n_r, &reply, err) == -1)
		return -1;
	if (rich != NULL)
		along = NULL;
	/* Strato answers the extended form with nothing (L062). */
	if (!has_inbox(*folders_r, *n_r)) {
		if (list_ask(r, "LIST \"\" \"*\"", along, arena, folders_r, n_r,
			&reply, err) == -1 ||
		    reply_check(r, &reply, "LIST", err) == -1)
			return -1;
	}
	if (r->is_list_cut)
		log_warn(r->log, "LIST has more folders than can be held: "
		    "the first %zu are followed", *n_r);
	if (notes->n_broken_lists > 0)
		log_warn(r->log, "%u folders left out: no name a command "
		    "could use", notes->n_broken_lists);
	if (*n_r == 0)
		return err_set(err, ERR_SERVER,
		    "%s: LIST shows no folder at all", r->host);
	return 0;
}

int
imap_list(struct imap *r, struct arena *arena,
    struct imap_folder **folders_r, size_t *n_r, struct err *err)
{
	return imap_list_with(r, NULL, arena, folders_r, n_r, err);
}
