/*
 * control_mail.c - changes through the control port, as by a second client.
 *
 * Runs in: mockimapd.  Never blocks.
 */
#include "config.h"

#include "control.h"

#include "base/clock.h"
#include "base/xmem.h"
#include "session.h"
#include "traffic.h"

#define COUNT_MAX 1000000

static void
note(struct control_call *call, const struct account *account,
    const char *what, const char *folder)
{
	char text[120];

	snprintf(text, sizeof(text), "%s %s", what, folder);
	record_add(call->world->record, RECORD_CHANGE, 0, account, text);
}

/* The argument `uids` as a set ("1:3,7", "*", "1:*"). */
static bool
take_uids(struct control_call *call, const struct folder *folder,
    struct set *set)
{
	const char *text = control_text(call, "uids");
	struct parse in;

	if (text == NULL)
		return false;
	in = (struct parse){ text, text + strlen(text), call->world->arena };
	if (!parse_set(&in, set) || !parse_end(&in)) {
		call->error = "uids: not a set";
		return false;
	}
	set_resolve(set, folder_last_uid(folder));
	return true;
}

/* ["\\Seen", "word"] */
static bool
take_flags(struct control_call *call, const char *key, struct flag_list *list)
{
	const json_t *words = json_object_get(call->in, key), *word;
	size_t i;

	*list = (struct flag_list){ 0 };
	json_array_foreach(words, i, word) {
		const char *text = json_string_value(word);

		if (text == NULL ||
		    !flag_parse((struct slice){ text, strlen(text) },
			call->world->arena, list)) {
			call->error = "not a flag";
			return false;
		}
	}
	return true;
}

CONTROL(control_deliver)
{
	struct folder *folder = control_folder(call, "folder");
	int64_t count = control_number_or(call, "count", 1);
	int64_t size = control_number_or(call, "size", 0);
	int64_t date = control_number_or(call, "date", clock_wall_secs());
	json_t *uids = json_array();

	control_set(call, "uids", uids);
	if (folder == NULL)
		return;
	if (count < 0 || count > COUNT_MAX || size < 0 || size > INT32_MAX) {
		call->error = "count or size out of range";
		return;
	}
	for (int64_t i = 0; i < count; i++)
		json_array_append_new(uids, json_integer(
		    folder_deliver(folder, (uint32_t)size, date)));
	folder->account->counters.delivered += (uint64_t)count;
	call->world->totals.delivered += (uint64_t)count;
	note(call, folder->account, "deliver", folder->name);
	session_announce(folder);
}

/* `text` is UTF-8; for other bytes use IMAP's APPEND. */
CONTROL(control_append)
{
	struct folder *folder = control_folder(call, "folder");
	const char *text = control_text(call, "text");
	struct flag_list flags;
	uint32_t uid;

	if (folder == NULL || text == NULL ||
	    !take_flags(call, "flags", &flags))
		return;
	uid = folder_append(folder, raw_new(text, (uint32_t)strlen(text)),
	    &flags, control_number_or(call, "date", clock_wall_secs()));
	control_set(call, "uid", json_integer(uid));
	note(call, folder->account, "append", folder->name);
	session_announce(folder);
}

/* What no server may do: another message under the same UID, and nobody is
 * told. */
CONTROL(control_replace)
{
	struct folder *folder = control_folder(call, "folder");
	const char *text = control_text(call, "text");
	struct message *message;

	if (folder == NULL || text == NULL)
		return;
	message = folder_message(folder, (uint32_t)control_number_or(call,
	    "uid", 0));
	if (message == NULL) {
		call->error = "no such message";
		return;
	}
	raw_drop(&message->mail.raw);
	message->mail.raw = raw_new(text, (uint32_t)strlen(text));
	message->mail.size = message->mail.raw->size;
	message->date = control_number_or(call, "date", message->date);
	note(call, folder->account, "replace", folder->name);
}

CONTROL(control_flags)
{
	struct folder *folder = control_folder(call, "folder");
	struct flag_list added, removed;
	struct set set;
	size_t n = 0;

	if (folder == NULL || !take_uids(call, folder, &set) ||
	    !take_flags(call, "add", &added) ||
	    !take_flags(call, "remove", &removed))
		return;
	for (size_t i = 0; i < folder->n; i++) {
		struct message *message = &folder->messages[i];
		bool has_changed;

		if (!set_has(&set, message->uid))
			continue;
		has_changed = folder_flag(folder, message, FLAGS_ADD, &added);
		has_changed |= folder_flag(folder, message, FLAGS_REMOVE,
		    &removed);
		n += has_changed;
	}
	control_set(call, "changed", json_integer((json_int_t)n));
	note(call, folder->account, "flags", folder->name);
	session_announce(folder);
}

CONTROL(control_expunge)
{
	struct folder *folder = control_folder(call, "folder");
	struct set set;

	if (folder == NULL || !take_uids(call, folder, &set))
		return;
	control_set(call, "expunged", json_integer((json_int_t)
	    folder_expunge(folder, folder_want_set, &set, NULL)));
	note(call, folder->account, "expunge", folder->name);
	session_announce(folder);
}

/* Or a copy, with "copy": true. */
CONTROL(control_move)
{
	struct folder *folder = control_folder(call, "folder"), *to;
	json_t *uids = json_array();
	struct set set;
	size_t n;

	control_set(call, "uids", uids);
	if (folder == NULL || !take_uids(call, folder, &set))
		return;
	to = folder_find(folder->account, control_text_or(call, "to", ""));
	if (to == NULL) {
		call->error = "to: no such folder";
		return;
	}
	n = folder->n; /* `to` may be the same folder */
	for (size_t i = 0; i < n; i++)
		if (set_has(&set, folder->messages[i].uid))
			json_array_append_new(uids, json_integer(folder_copy(
			    folder, &folder->messages[i], to)));
	if (!json_is_true(json_object_get(call->in, "copy")))
		folder_expunge(folder, folder_want_set, &set, NULL);
	note(call, folder->account, "move", folder->name);
	session_announce(to);
	session_announce(folder);
}

CONTROL(control_create)
{
	struct account *account = control_account(call);
	const char *name = control_text(call, "folder");

	if (account == NULL || name == NULL)
		return;
	if (folder_create(account, name) == NULL)
		call->error = "there is one, or the name is not allowed";
	else
		note(call, account, "create", name);
}

CONTROL(control_rename)
{
	struct folder *folder = control_folder(call, "folder");
	const char *name = control_text(call, "to");

	if (folder == NULL || name == NULL)
		return;
	if (!folder_rename(folder, name))
		call->error = "not this folder, or not to that name";
	else
		note(call, folder->account, "rename", name);
}

CONTROL(control_delete)
{
	struct folder *folder = control_folder(call, "folder");

	if (folder == NULL)
		return;
	if (strcmp(folder->name, "INBOX") == 0) {
		call->error = "not INBOX";
		return;
	}
	note(call, folder->account, "delete", folder->name);
	session_evict(folder, "The folder is deleted");
	folder_remove(folder);
}

CONTROL(control_uidvalidity)
{
	struct folder *folder = control_folder(call, "folder");

	if (folder == NULL)
		return;
	session_evict(folder, "The folder was rebuilt");
	folder_renumber(folder);
	control_set(call, "uidvalidity", json_integer(folder->uidvalidity));
	note(call, folder->account, "uidvalidity", folder->name);
}

CONTROL(control_password)
{
	struct account *account = control_account(call);
	const char *password = control_text(call, "password");

	if (account == NULL || password == NULL)
		return;
	free(account->password);
	account->password = xstrdup(password);
}

CONTROL(control_traffic)
{
	const json_t *rate = json_object_get(call->in, "per_second");

	if (!json_is_number(rate) || json_number_value(rate) < 0 ||
	    json_number_value(rate) > 100000) {
		call->error = "per_second: a number from 0 to 100000";
		return;
	}
	traffic_set(call->world->traffic, json_number_value(rate),
	    control_text_or(call, "match", "*"));
}

/* --- what there is ------------------------------------------------------- */

static json_t *
message_to_json(const struct folder *folder, const struct message *message,
    bool with_digest)
{
	struct buf flags = BUF_INIT;
	char digest[65] = "";
	json_t *row;

	folder_print_flags(folder, message, &flags);
	if (with_digest)
		mail_digest(&message->mail, folder->account->login, digest);
	row = json_pack("[i,s,i,s]", (int)message->uid, buf_str(&flags),
	    (int)message->mail.size, digest);
	buf_release(&flags);
	return row;
}

static json_t *
folder_to_json(const struct folder *folder, bool with_digest)
{
	json_t *messages = json_array();

	for (size_t i = 0; i < folder->n; i++)
		json_array_append_new(messages, message_to_json(folder,
		    &folder->messages[i], with_digest));
	return json_pack("{s:i,s:i,s:I,s:o}", "uidvalidity",
	    (int)folder->uidvalidity, "uidnext", (int)folder->uidnext,
	    "modseq", (json_int_t)folder->modseq, "messages", messages);
}

/* All folders, or the one named. */
CONTROL(control_state)
{
	struct account *account = control_account(call);
	const char *only = control_text_or(call, "folder", NULL);
	bool with_digest =
	    !json_is_false(json_object_get(call->in, "digests"));
	json_t *folders = json_object();

	control_set(call, "folders", folders);
	for (size_t i = 0; account != NULL && i < account->n_folders; i++) {
		const struct folder *folder = account->folders[i];

		if (!folder->is_noselect &&
		    (only == NULL || strcmp(only, folder->name) == 0))
			json_object_set_new(folders, folder->name,
			    folder_to_json(folder, with_digest));
	}
}
