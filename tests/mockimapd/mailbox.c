/*
 * mailbox.c - folders and what is in them.
 *
 * Runs in: mockimapd.  Never blocks.
 *
 * Messages lie in an array by UID.  What was expunged is remembered for ever,
 * since a QRESYNC client may come back with any old modseq.
 */
#include "config.h"

#include "mailbox.h"

#include "base/xmem.h"

#include <strings.h>

#define FOLDERS_MAX 10000
/* INTERNALDATE of the mail an account begins with: long ago, so that nobody
 * takes it for activity of today. */
#define OLD_SECS 1577836800
#define OLD_STEP 600

static bool
is_inbox(const char *name)
{
	return strcasecmp(name, "INBOX") == 0;
}

struct folder *
folder_find(const struct account *account, const char *name)
{
	if (is_inbox(name))
		name = "INBOX";
	for (size_t i = 0; i < account->n_folders; i++)
		if (strcmp(account->folders[i]->name, name) == 0)
			return account->folders[i];
	return NULL;
}

/* Modified UTF-7 is taken as it comes; eight bits and controls are not. */
static bool
is_name(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)name[i] < ' ' ||
		    (unsigned char)name[i] >= 0x7f || name[i] == '*' ||
		    name[i] == '%' ||
		    (name[i] == DELIMITER && name[i + 1] == DELIMITER))
			return false;
	return len > 0 && len <= FOLDER_NAME_MAX && name[0] != DELIMITER &&
	    name[len - 1] != DELIMITER;
}

struct folder *
folder_create(struct account *account, const char *name)
{
	struct folder *folder;

	if (account->n_folders == FOLDERS_MAX || !is_name(name) ||
	    folder_find(account, name) != NULL)
		return NULL;
	folder = xcalloc(1, sizeof(*folder));
	folder->account = account;
	folder->name = xstrdup(is_inbox(name) ? "INBOX" : name);
	folder->uidvalidity = ++account->last_uidvalidity;
	folder->uidnext = 1;
	folder->modseq = 1;
	LIST_INIT(&folder->sessions);
	GROW(account->folders, account->n_folders, account->cap_folders);
	account->folders[account->n_folders++] = folder;
	return folder;
}

void
folder_remove(struct folder *folder)
{
	struct account *account = folder->account;
	size_t i = 0;

	while (account->folders[i] != folder)
		i++;
	memmove(&account->folders[i], &account->folders[i + 1],
	    (account->n_folders - i - 1) * sizeof(account->folders[0]));
	account->n_folders--;
	for (i = 0; i < folder->n; i++)
		raw_drop(&folder->messages[i].mail.raw);
	for (i = 0; i < folder->n_keywords; i++)
		free(folder->keywords[i]);
	free(folder->messages);
	free(folder->gone);
	free(folder->name);
	free(folder);
}

static bool
is_below(const struct folder *folder, const struct folder *top)
{
	size_t len = strlen(top->name);

	return strncmp(folder->name, top->name, len) == 0 &&
	    folder->name[len] == DELIMITER;
}

bool
folder_has_children(const struct folder *folder)
{
	const struct account *account = folder->account;

	for (size_t i = 0; i < account->n_folders; i++)
		if (is_below(account->folders[i], folder))
			return true;
	return false;
}

bool
folder_rename(struct folder *folder, const char *name)
{
	struct account *account = folder->account;
	size_t old_len = strlen(folder->name), len = strlen(name);
	struct buf renamed = BUF_INIT;

	if (!is_name(name) || is_inbox(folder->name) ||
	    folder_find(account, name) != NULL ||
	    (strncmp(name, folder->name, old_len) == 0 &&
		name[old_len] == DELIMITER))
		return false;
	for (size_t i = 0; i < account->n_folders; i++) {
		struct folder *below = account->folders[i];

		if (!is_below(below, folder))
			continue;
		buf_reset(&renamed);
		buf_add(&renamed, name, len);
		buf_adds(&renamed, below->name + old_len);
		free(below->name);
		below->name = xstrdup(buf_str(&renamed));
	}
	buf_release(&renamed);
	free(folder->name);
	folder->name = xstrdup(name);
	folder->use = NULL;
	return true;
}

void
folder_renumber(struct folder *folder)
{
	folder->uidvalidity = ++folder->account->last_uidvalidity;
	folder->n_gone = 0;
	folder->modseq++;
	for (size_t i = 0; i < folder->n; i++) {
		folder->messages[i].uid = (uint32_t)i + 1;
		folder->messages[i].modseq = folder->modseq;
	}
	folder->uidnext = (uint32_t)folder->n + 1;
}

struct message *
folder_message(const struct folder *folder, uint32_t uid)
{
	size_t low = 0, high = folder->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (folder->messages[middle].uid < uid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < folder->n && folder->messages[low].uid == uid ?
	    &folder->messages[low] : NULL;
}

static struct message *
add(struct folder *folder, int64_t date)
{
	struct message *message;

	GROW(folder->messages, folder->n, folder->cap);
	message = &folder->messages[folder->n++];
	*message = (struct message){ .uid = folder->uidnext++,
		.modseq = ++folder->modseq, .date = date };
	return message;
}

uint32_t
folder_deliver(struct folder *folder, uint32_t size, int64_t date)
{
	const struct account *account = folder->account;
	const struct group *group = account->group;
	struct message *message = add(folder, date);
	uint64_t seed = mail_seed(account->world->seed, account->login,
	    folder->name, message->uid, false);
	bool is_big = (double)(seed >> 11) <
	    group->big_share * (double)(UINT64_C(1) << 53);

	if (size > 0)
		is_big = size >= group->big_size;
	else
		size = is_big ? group->big_size :
		    group->size / 2 + (uint32_t)((seed >> 16) %
			(group->size + 1));
	message->mail.seed = is_big ? seed | 1 : seed;
	message->mail.born = message->uid;
	message->mail.size = mail_size(message->mail.seed, account->login,
	    message->uid, size);
	return message->uid;
}

static bool
find_keyword(struct folder *folder, const char *name, uint32_t *bit_r)
{
	for (size_t i = 0; i < folder->n_keywords; i++)
		if (strcasecmp(folder->keywords[i], name) == 0) {
			*bit_r = 1U << i;
			return true;
		}
	if (folder->n_keywords == KEYWORDS_MAX)
		return false;
	*bit_r = 1U << folder->n_keywords;
	folder->keywords[folder->n_keywords++] = xstrdup(name);
	return true;
}

/* A folder that has no room for another keyword goes without it. */
static uint32_t
keyword_bits(struct folder *folder, const struct flag_list *flags)
{
	uint32_t bits = 0, bit;

	for (size_t i = 0; i < flags->n_keywords; i++)
		if (find_keyword(folder, flags->keywords[i], &bit))
			bits |= bit;
	return bits;
}

uint32_t
folder_append(struct folder *folder, struct raw *raw,
    const struct flag_list *flags, int64_t date)
{
	struct message *message = add(folder, date);

	message->mail.raw = raw;
	message->mail.size = raw->size;
	message->flags = flags->flags;
	message->keywords = keyword_bits(folder, flags);
	return message->uid;
}

uint32_t
folder_copy(const struct folder *from, const struct message *original,
    struct folder *to)
{
	struct message copy = *original, *message = add(to, copy.date);
	struct flag_list words = { 0 };

	for (size_t i = 0; i < from->n_keywords; i++)
		if (copy.keywords & (1U << i))
			words.keywords[words.n_keywords++] = from->keywords[i];
	message->mail = copy.mail;
	if (copy.mail.raw != NULL)
		copy.mail.raw->users++;
	message->flags = copy.flags;
	message->keywords = keyword_bits(to, &words);
	return message->uid;
}

bool
folder_flag(struct folder *folder, struct message *message,
    enum flag_change change, const struct flag_list *list)
{
	uint32_t flags = list->flags, keywords = keyword_bits(folder, list);

	if (change == FLAGS_ADD) {
		flags |= message->flags;
		keywords |= message->keywords;
	} else if (change == FLAGS_REMOVE) {
		flags = message->flags & ~flags;
		keywords = message->keywords & ~keywords;
	}
	if (flags == message->flags && keywords == message->keywords)
		return false;
	message->flags = flags;
	message->keywords = keywords;
	message->modseq = ++folder->modseq;
	return true;
}

bool
folder_want_set(const struct message *message, void *arg)
{
	return set_has(arg, message->uid);
}

size_t
folder_expunge(struct folder *folder, folder_want want, void *arg,
    uint32_t **uids_r)
{
	size_t kept = 0, n = 0, cap = 0;
	uint32_t *uids = NULL;
	uint64_t modseq = folder->modseq + 1;

	for (size_t i = 0; i < folder->n; i++) {
		struct message *message = &folder->messages[i];

		if (!want(message, arg)) {
			folder->messages[kept++] = *message;
			continue;
		}
		raw_drop(&message->mail.raw);
		GROW(folder->gone, folder->n_gone, folder->cap_gone);
		folder->gone[folder->n_gone++] =
		    (struct gone){ message->uid, modseq };
		GROW(uids, n, cap);
		uids[n++] = message->uid;
	}
	folder->n = kept;
	if (n > 0)
		folder->modseq = modseq;
	if (uids_r != NULL)
		*uids_r = uids;
	else
		free(uids);
	return n;
}

void
folder_print_flags(const struct folder *folder, const struct message *message,
    struct buf *out)
{
	const char *between = "";

	for (unsigned i = 0; i < 5; i++)
		if (message->flags & (1U << i)) {
			buf_addf(out, "%s%s", between, flag_names[i]);
			between = " ";
		}
	for (size_t i = 0; i < folder->n_keywords; i++)
		if (message->keywords & (1U << i)) {
			buf_addf(out, "%s%s", between, folder->keywords[i]);
			between = " ";
		}
}

static void
fill(struct folder *folder, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		int64_t date = OLD_SECS + (int64_t)i * OLD_STEP;
		uint32_t uid = folder_deliver(folder, 0, date);
		struct message *message = folder_message(folder, uid);

		/* old mail is mostly read */
		if (i + 5 < count)
			message->flags = FLAG_SEEN;
	}
}

void
mailbox_furnish(struct account *account)
{
	static const struct {
		const char *name, *use;
	} usual[] = { { "INBOX", NULL }, { "Sent", "\\Sent" },
		{ "Drafts", "\\Drafts" }, { "Archive", "\\Archive" },
		{ "Trash", "\\Trash" }, { "Junk", "\\Junk" } };
	const struct group *group = account->group;
	char name[32];

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		struct folder *folder = folder_create(account, usual[i].name);

		folder->use = usual[i].use;
		fill(folder, i == 0 ? group->inbox : group->other);
	}
	for (uint32_t i = 1; i <= group->folders; i++) {
		struct folder *folder;

		snprintf(name, sizeof(name), "Folder %u", i);
		folder = folder_create(account, name);
		if (folder != NULL)
			fill(folder, group->other);
	}
}
