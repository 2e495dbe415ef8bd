/*
 * commands.c - the table of IMAP commands, and those that are about the
 * connection itself.
 *
 * Runs in: mockimapd.  Never blocks.
 */
#include "config.h"

#include "session.h"

#include "base/buf.h"
#include "transport.h"

#include <bsd/string.h>
#include <strings.h>

#define ANY (STATE_GREETED | STATE_LOGGED_IN | STATE_SELECTED)
#define IN (STATE_LOGGED_IN | STATE_SELECTED)

static COMMAND(command_capability);
static COMMAND(command_noop);
static COMMAND(command_logout);
static COMMAND(command_id);
static COMMAND(command_starttls);
static COMMAND(command_login);
static COMMAND(command_authenticate);
static COMMAND(command_enable);
static COMMAND(command_namespace);
static COMMAND(command_idle);

#define NO_CAP CAP_COUNT /* part of IMAP4rev1 */

static const struct command {
	const char *name;
	unsigned states;
	enum capability cap; /* what it belongs to */
	bool may_be_uid;
	void (*run)(struct session *s, struct parse *in);
} commands[] = {
	{ "CAPABILITY", ANY, NO_CAP, false, command_capability },
	{ "NOOP", ANY, NO_CAP, false, command_noop },
	{ "LOGOUT", ANY, NO_CAP, false, command_logout },
	{ "ID", ANY, CAP_ID, false, command_id },
	{ "STARTTLS", STATE_GREETED, NO_CAP, false, command_starttls },
	{ "LOGIN", STATE_GREETED, NO_CAP, false, command_login },
	{ "AUTHENTICATE", STATE_GREETED, NO_CAP, false,
	    command_authenticate },
	{ "ENABLE", STATE_LOGGED_IN, CAP_ENABLE, false, command_enable },
	{ "NAMESPACE", IN, CAP_NAMESPACE, false, command_namespace },
	{ "LIST", IN, NO_CAP, false, command_list },
	{ "LSUB", IN, NO_CAP, false, command_lsub },
	{ "STATUS", IN, NO_CAP, false, command_status },
	{ "SELECT", IN, NO_CAP, false, command_select },
	{ "EXAMINE", IN, NO_CAP, false, command_examine },
	{ "CREATE", IN, NO_CAP, false, command_create },
	{ "DELETE", IN, NO_CAP, false, command_delete },
	{ "RENAME", IN, NO_CAP, false, command_rename },
	{ "SUBSCRIBE", IN, NO_CAP, false, command_subscribe },
	{ "UNSUBSCRIBE", IN, NO_CAP, false, command_subscribe },
	{ "APPEND", IN, NO_CAP, false, command_append },
	{ "IDLE", IN, CAP_IDLE, false, command_idle },
	{ "CHECK", STATE_SELECTED, NO_CAP, false, command_noop },
	{ "UNSELECT", STATE_SELECTED, CAP_UNSELECT, false, command_unselect },
	{ "CLOSE", STATE_SELECTED, NO_CAP, false, command_close },
	{ "FETCH", STATE_SELECTED, NO_CAP, true, command_fetch },
	{ "STORE", STATE_SELECTED, NO_CAP, true, command_store },
	{ "COPY", STATE_SELECTED, NO_CAP, true, command_copy },
	{ "MOVE", STATE_SELECTED, CAP_MOVE, true, command_move },
	{ "EXPUNGE", STATE_SELECTED, NO_CAP, true, command_expunge },
	{ "SEARCH", STATE_SELECTED, NO_CAP, true, command_search },
};

/* --- running one --------------------------------------------------------- */

static const struct command *
find_command(struct slice word, bool is_uid)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (slice_is(word, commands[i].name))
			return is_uid && !commands[i].may_be_uid ? NULL :
			    &commands[i];
	return NULL;
}

static bool
take_tag(struct session *s, struct parse *in)
{
	struct slice tag;

	s->tag[0] = '\0';
	if (!parse_atom(in, &tag) || tag.len >= sizeof(s->tag) ||
	    memchr(tag.p, '+', tag.len) != NULL || !parse_space(in))
		return false;
	memcpy(s->tag, tag.p, tag.len);
	s->tag[tag.len] = '\0';
	return true;
}

static const struct command *
take_name(struct session *s, struct parse *in)
{
	const struct command *command;
	struct slice word;

	s->is_uid = false;
	if (!parse_atom(in, &word))
		return NULL;
	if (slice_is(word, "UID")) {
		s->is_uid = true;
		if (!parse_space(in) || !parse_atom(in, &word))
			return NULL;
	}
	command = find_command(word, s->is_uid);
	if (command != NULL)
		snprintf(s->name, sizeof(s->name), "%s%s",
		    s->is_uid ? "UID " : "", command->name);
	return command;
}

/* Has a secret to hide, and faults that wait for the name (log_in). */
static bool
is_login(const struct command *command)
{
	return command->run == command_login ||
	    command->run == command_authenticate;
}

static void
note_command(struct session *s, const struct command *command,
    const char *arguments)
{
	char text[160];

	snprintf(text, sizeof(text), "%s%s", s->name,
	    is_login(command) ? "" : arguments);
	s->world->totals.commands++;
	if (s->account != NULL)
		s->account->counters.commands++;
	record_add(s->world->record, RECORD_COMMAND, s->conn, s->account,
	    text);
}

static bool
is_allowed(const struct session *s, const struct command *command)
{
	return (command->states & s->state) != 0 &&
	    (command->cap == NO_CAP || session_has(s, command->cap));
}

/* Its faults strike once, also when it runs again after a stall. */
static bool
pass_faults(struct session *s, const char *login, const char *arguments)
{
	const struct fault *fault;

	if (s->is_faulted) {
		s->is_faulted = false;
		return true;
	}
	fault = fault_strike(s->world->faults, login, s->name, arguments);
	return fault == NULL || command_fault(s, fault);
}

void
command_run(struct session *s)
{
	struct parse in = { s->line.data, s->line.data + s->line.len,
		s->world->arena };
	const struct command *command;

	if (!take_tag(s, &in)) {
		session_say(s, "* BAD A command begins with a tag");
		return;
	}
	command = take_name(s, &in);
	if (command == NULL) {
		session_answer(s, "BAD Unknown command");
		return;
	}
	if (!s->is_faulted)
		note_command(s, command, in.p);
	if (!is_login(command) && !pass_faults(s,
		s->account != NULL ? s->account->login : NULL, in.p))
		return;
	if (!is_allowed(s, command))
		session_answer(s, "BAD Not now or not here: %s", s->name);
	else
		command->run(s, &in);
}

/* --- faults -------------------------------------------------------------- */

static void
stall(struct session *s, int64_t msecs)
{
	struct timeval tv = { msecs / 1000, msecs % 1000 * 1000 };

	s->is_stalled = true;
	s->is_faulted = true;
	if (msecs > 0)
		evtimer_add(s->timer, &tv);
}

static void
note_refusal(struct session *s, struct account *account, const char *text)
{
	s->world->totals.refused++;
	if (account != NULL)
		account->counters.refused++;
	record_add(s->world->record, RECORD_REFUSED, s->conn, account, text);
}

static void
answer_instead(struct session *s, const char *text)
{
	bool is_end = strncmp(text, "BYE", 3) == 0 || !s->has_greeted;

	if (!is_end) {
		if (s->state == STATE_GREETED)
			note_refusal(s, NULL, text);
		session_answer(s, "%s", text);
		return;
	}
	session_say(s, "* %s", text);
	s->is_ending = true;
	session_flush(s);
}

static void
add_garbage(struct buf *out, int64_t len)
{
	uint64_t x = 1;

	for (int64_t i = 0; i < len; i++) {
		x = mail_mix(x);
		buf_addc(out, (char)x);
	}
}

bool
command_fault(struct session *s, const struct fault *fault)
{
	s->world->totals.faults++;
	if (s->account != NULL)
		s->account->counters.faults++;
	record_add(s->world->record, RECORD_FAULT, s->conn, s->account,
	    fault_names[fault->kind]);
	switch (fault->kind) {
	case FAULT_DROP:
		if (fault->bytes == 0) {
			session_close(s, "fault: drop");
			return false;
		}
		transport_set_limit(s->transport, fault->bytes);
		return true;
	case FAULT_STALL:
		stall(s, fault->msecs);
		return false;
	case FAULT_ANSWER:
		answer_instead(s, fault->text);
		return false;
	case FAULT_SAY:
		session_say(s, "%s", fault->text);
		return true;
	case FAULT_GARBAGE:
		add_garbage(&s->out, fault->bytes);
		return true;
	case FAULT_SLOW:
		transport_set_speed(s->transport, fault->bytes);
		return true;
	case FAULT_SILENT:
		s->is_silent = true;
		return true;
	default:
		return true;
	}
}

/* --- the connection ------------------------------------------------------ */

const char *
command_capabilities(const struct session *s)
{
	static char words[512];

	strlcpy(words, "IMAP4rev1", sizeof(words));
	for (unsigned i = 0; i < CAP_COUNT; i++)
		if (session_has(s, i)) {
			strlcat(words, " ", sizeof(words));
			strlcat(words, capability_names[i], sizeof(words));
		}
	if (s->state == STATE_GREETED) {
		strlcat(words, " AUTH=PLAIN", sizeof(words));
		if (s->world->tls != NULL && !transport_has_tls(s->transport))
			strlcat(words, " STARTTLS", sizeof(words));
	}
	return words;
}

static COMMAND(command_capability)
{
	if (!parse_end(in)) {
		session_bad(s);
		return;
	}
	session_say(s, "* CAPABILITY %s", command_capabilities(s));
	session_answer(s, "OK Done");
}

static COMMAND(command_noop)
{
	if (!parse_end(in)) {
		session_bad(s);
		return;
	}
	session_report(s);
	session_answer(s, "OK Done");
}

static COMMAND(command_logout)
{
	(void)in;
	session_say(s, "* BYE Good bye");
	session_answer(s, "OK Done");
	s->is_ending = true;
}

static COMMAND(command_id)
{
	(void)in;
	session_say(s, "* ID (\"name\" \"mockimapd\")");
	session_answer(s, "OK Done");
}

static COMMAND(command_starttls)
{
	if (!parse_end(in) || s->world->tls == NULL ||
	    transport_has_tls(s->transport)) {
		session_answer(s, "BAD No TLS here and now");
		return;
	}
	session_answer(s, "OK Begin");
	session_flush(s);
	if (!s->is_closed && !transport_start_tls(s->transport, s->world->tls))
		session_close(s, "no TLS");
}

static COMMAND(command_enable)
{
	struct buf enabled = BUF_INIT;
	struct slice word;

	while (parse_space(in)) {
		if (!parse_atom(in, &word))
			break;
		if (slice_is(word, "QRESYNC") && session_has(s, CAP_QRESYNC)) {
			s->has_qresync = s->has_condstore = true;
			buf_adds(&enabled, " QRESYNC");
		} else if (slice_is(word, "CONDSTORE") &&
		    session_has(s, CAP_CONDSTORE)) {
			s->has_condstore = true;
			buf_adds(&enabled, " CONDSTORE");
		}
	}
	if (parse_end(in)) {
		session_say(s, "* ENABLED%s", buf_str(&enabled));
		session_answer(s, "OK Done");
	} else {
		session_bad(s);
	}
	buf_release(&enabled);
}

static COMMAND(command_namespace)
{
	if (!parse_end(in)) {
		session_bad(s);
		return;
	}
	session_say(s, "* NAMESPACE ((\"\" \"%c\")) NIL NIL", DELIMITER);
	session_answer(s, "OK Done");
}

static COMMAND(command_idle)
{
	if (!parse_end(in)) {
		session_bad(s);
		return;
	}
	session_say(s, "+ Idling");
	session_idle(s, true);
	if (!s->is_silent)
		session_report(s);
}

/* --- logging in ---------------------------------------------------------- */

static void
refuse(struct session *s, struct account *account, const char *text)
{
	note_refusal(s, account, text);
	session_answer(s, "%s", text);
}

static void
log_in(struct session *s, const char *login, const char *password)
{
	struct account *account = world_account(s->world, login);
	unsigned max;

	strlcpy(s->name, "LOGIN", sizeof(s->name));
	if (!pass_faults(s, login, ""))
		return;
	if (account == NULL || !account_is_password(account, password)) {
		refuse(s, account, "NO [AUTHENTICATIONFAILED] Refused");
		return;
	}
	max = account->group->max_connections;
	if (max > 0 && account->counters.connections >= max) {
		refuse(s, account, account->group->limit_text);
		return;
	}
	session_login(s, account);
	session_answer(s, "OK [CAPABILITY %s] Logged in",
	    command_capabilities(s));
}

/* NULL when it holds a NUL. */
static char *
to_string(struct session *s, struct slice slice)
{
	if (memchr(slice.p, '\0', slice.len) != NULL)
		return NULL;
	return slice_dup(slice, s->world->arena);
}

static COMMAND(command_login)
{
	struct slice words[2];
	char *login, *password;

	if (!parse_space(in) || !parse_astring(in, &words[0]) ||
	    !parse_space(in) || !parse_astring(in, &words[1]) ||
	    !parse_end(in) || (login = to_string(s, words[0])) == NULL ||
	    (password = to_string(s, words[1])) == NULL)
		session_bad(s);
	else
		log_in(s, login, password);
}

static int
digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = c != '\0' ? strchr(digits, c) : NULL;

	return found != NULL ? (int)(found - digits) : -1;
}

static bool
decode_base64(const char *p, size_t len, struct buf *out)
{
	uint32_t bits = 0;
	unsigned n = 0;

	if (len % 4 != 0)
		return false;
	while (len > 0 && p[len - 1] == '=')
		len--;
	for (size_t i = 0; i < len; i++) {
		int d = digit(p[i]);

		if (d < 0)
			return false;
		bits = bits << 6 | (uint32_t)d;
		n += 6;
		if (n >= 8) {
			n -= 8;
			buf_addc(out, (char)(bits >> n));
		}
	}
	return true;
}

static void
log_in_plain(struct session *s, const char *line, size_t len)
{
	struct buf plain = BUF_INIT;
	const char *login, *password, *end;

	if (!decode_base64(line, len, &plain)) {
		session_answer(s, "BAD Not base64");
		buf_release(&plain);
		return;
	}
	/* authzid NUL login NUL password */
	end = buf_str(&plain) + plain.len;
	login = memchr(buf_str(&plain), '\0', plain.len);
	password = login == NULL ? NULL :
	    memchr(login + 1, '\0', (size_t)(end - login - 1));
	if (password == NULL)
		session_bad(s);
	else
		log_in(s, login + 1, password + 1);
	buf_release(&plain);
}

void
command_auth_line(struct session *s, const char *line, size_t len)
{
	s->is_auth = false;
	log_in_plain(s, line, len);
	s->is_auth = s->is_stalled; /* the same line again, later */
}

static COMMAND(command_authenticate)
{
	struct slice word;

	if (!parse_space(in) || !parse_atom(in, &word)) {
		session_bad(s);
	} else if (!slice_is(word, "PLAIN")) {
		session_answer(s, "NO No such mechanism");
	} else if (parse_end(in)) {
		session_say(s, "+ ");
		s->is_auth = true;
	} else if (!session_has(s, CAP_SASL_IR) || !parse_space(in)) {
		session_bad(s);
	} else {
		log_in_plain(s, in->p, (size_t)(in->end - in->p));
	}
}
