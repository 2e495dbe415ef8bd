/*
 * session.c - one IMAP connection: its life, and its lines.
 *
 * Runs in: mockimapd.  Never blocks.
 *
 * A command is run when it is there as a whole, literals included.  A closed
 * session stays until the end of the turn, since whoever closed it may be
 * working for it.
 */
#include "config.h"

#include "session.h"

#include "base/log.h"
#include "base/xmem.h"
#include "transport.h"

#include <stdarg.h>

#include <bsd/string.h>
#include <ctype.h>
#include <strings.h>

#define LINE_MAX_BYTES 65536
#define COMMAND_MAX (1024 * 1024)
#define APPEND_MAX (100 * 1024 * 1024)

bool
session_has(const struct session *s, enum capability cap)
{
	unsigned caps = s->account != NULL ? s->account->group->caps :
	    STAILQ_FIRST(&s->world->groups)->caps;

	return (caps & CAP_BIT(cap)) != 0;
}

/* --- saying -------------------------------------------------------------- */

static void
add_line(struct session *s, const char *fmt, va_list args)
{
	char small[512], *text = small;
	va_list again;
	int len;

	va_copy(again, args);
	len = vsnprintf(small, sizeof(small), fmt, args);
	if (len >= (int)sizeof(small)) {
		text = xmalloc((size_t)len + 1);
		vsnprintf(text, (size_t)len + 1, fmt, again);
	}
	va_end(again);
	buf_add(&s->out, text, (size_t)len);
	buf_add(&s->out, "\r\n", 2);
	if (text != small)
		free(text);
}

void
session_say(struct session *s, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add_line(s, fmt, args);
	va_end(args);
}

void
session_answer(struct session *s, const char *fmt, ...)
{
	va_list args;

	buf_addf(&s->out, "%s ", s->tag[0] != '\0' ? s->tag : "*");
	va_start(args, fmt);
	add_line(s, fmt, args);
	va_end(args);
}

void
session_flush(struct session *s)
{
	if (s->is_closed || !transport_is_ready(s->transport))
		return;
	if (s->out.len > 0) {
		uint64_t len = s->out.len;

		s->world->totals.bytes_out += len;
		if (s->account != NULL)
			s->account->counters.bytes_out += len;
		transport_write(s->transport, s->out.data, s->out.len);
		buf_reset(&s->out);
		if (s->out.cap > 4 * LINE_MAX_BYTES)
			buf_release(&s->out);
	}
	if (s->is_ending && !s->is_closed &&
	    transport_pending(s->transport) == 0)
		session_close(s, "ended");
}

/* --- lines --------------------------------------------------------------- */

/* The end of the line in `line` announces a literal: its length. */
static bool
has_literal(const struct buf *line, uint64_t *len_r, bool *is_pushed_r)
{
	const char *p = line->data + line->len;
	uint64_t n = 0, scale = 1;

	if (line->len < 3 || *--p != '}')
		return false;
	*is_pushed_r = p[-1] == '+';
	if (*is_pushed_r)
		p--;
	if (p == line->data || !isdigit((unsigned char)p[-1]))
		return false;
	while (p > line->data && isdigit((unsigned char)p[-1])) {
		if (scale > UINT32_MAX)
			return false;
		n += (uint64_t)(*--p - '0') * scale;
		scale *= 10;
	}
	*len_r = n;
	return p > line->data && p[-1] == '{';
}

static bool
is_append(const struct buf *line)
{
	const char *space = memchr(line->data, ' ', line->len);
	size_t left = space != NULL ?
	    line->len - (size_t)(space - line->data) : 0;

	return left > 8 && strncasecmp(space, " APPEND ", 8) == 0;
}

static void
note_tag(struct session *s)
{
	size_t len = strcspn(s->line.data, " ");

	if (len < sizeof(s->tag))
		strlcpy(s->tag, s->line.data, len + 1);
}

/* False: the command is refused, or the connection. */
static bool
begin_literal(struct session *s, uint64_t len, bool is_pushed)
{
	size_t max = s->state == STATE_GREETED ? 4096 :
	    is_append(&s->line) ? APPEND_MAX : COMMAND_MAX;

	if (is_pushed && !session_has(s, CAP_LITERAL_PLUS)) {
		session_bye(s, "This server has no LITERAL+");
		return false;
	}
	if (s->line.len + len > max) {
		note_tag(s);
		if (is_pushed)
			session_bye(s, "Literal too long");
		else
			session_answer(s, "NO [TOOBIG] Literal too long");
		buf_reset(&s->line);
		return false;
	}
	if (!is_pushed) {
		session_say(s, "+ Go on");
		session_flush(s);
	}
	buf_add(&s->line, "\r\n", 2);
	s->literal_left = (size_t)len;
	return true;
}

static void
take_literal(struct session *s)
{
	size_t n = evbuffer_get_length(s->in);
	int got;

	if (n > s->literal_left)
		n = s->literal_left;
	if (n == 0)
		return;
	got = evbuffer_remove(s->in, buf_reserve(&s->line, n), n);
	if (got > 0) {
		s->line.len += (size_t)got;
		s->line.data[s->line.len] = '\0';
		s->literal_left -= (size_t)got;
	}
}

/* The next line goes to `line`, without its end. */
static bool
take_line(struct session *s)
{
	size_t len;
	char *line;

	line = evbuffer_readln(s->in, &len, EVBUFFER_EOL_CRLF_STRICT);
	if (line == NULL) {
		if (evbuffer_get_length(s->in) > LINE_MAX_BYTES)
			session_bye(s, "Line too long");
		return false;
	}
	if (s->line.len + len > APPEND_MAX + LINE_MAX_BYTES) {
		free(line);
		session_bye(s, "Command too long");
		return false;
	}
	buf_add(&s->line, line, len);
	free(line);
	return true;
}

/* True: `line` holds a whole command. */
static bool
take_command(struct session *s)
{
	uint64_t len;
	bool is_pushed;

	while (!s->is_closed && !s->is_ending) {
		if (s->literal_left > 0) {
			take_literal(s);
			if (s->literal_left > 0)
				return false;
		}
		if (!take_line(s))
			return false;
		if (s->is_auth || s->is_idle ||
		    !has_literal(&s->line, &len, &is_pushed))
			return true;
		begin_literal(s, len, is_pushed);
	}
	return false;
}

static void
take_done(struct session *s)
{
	session_idle(s, false);
	if (s->line.len == 4 && strncasecmp(s->line.data, "DONE", 4) == 0) {
		session_report(s);
		session_answer(s, "OK Idle ended");
	} else {
		session_answer(s, "BAD Expected DONE");
	}
}

static void
run_line(struct session *s)
{
	if (s->is_idle)
		take_done(s);
	else if (s->is_auth)
		command_auth_line(s, s->line.data, s->line.len);
	else
		command_run(s);
	/* A stalled command is kept; it runs when the stall is over. */
	if (!s->is_stalled) {
		buf_reset(&s->line);
		if (s->line.cap > LINE_MAX_BYTES)
			buf_release(&s->line);
	}
	arena_reset(s->world->arena);
}

void
session_work(struct session *s)
{
	while (!s->is_closed && !s->is_ending && !s->is_stalled &&
	    s->fetch == NULL) {
		transport_fill(s->transport);
		if (s->is_closed)
			return;
		s->in = transport_in(s->transport);
		if (!take_command(s))
			break;
		run_line(s);
		session_flush(s);
	}
	session_flush(s);
}

/* --- life ---------------------------------------------------------------- */

static void
on_bytes(void *arg)
{
	session_work(arg);
}

static void
on_written(void *arg)
{
	struct session *s = arg;

	if (s->fetch != NULL)
		fetch_go_on(s);
	session_work(s);
}

static void
on_end(void *arg, const char *why)
{
	session_close(arg, why);
}

/* Faults at "connect"; the greeting. */
static void
greet(struct session *s)
{
	struct world *world = s->world;
	const struct fault *fault = NULL;

	if (!s->is_faulted)
		fault = fault_strike(world->faults, NULL, "connect", "");
	if (world->max_connections > 0 &&
	    world->totals.connections > world->max_connections) {
		world->totals.refused++;
		record_add(world->record, RECORD_REFUSED, s->conn, NULL,
		    "too many in all");
		session_bye(s, "Too many connections");
		return;
	}
	if (fault != NULL && !command_fault(s, fault))
		return;
	s->has_greeted = true;
	session_say(s, "* OK [CAPABILITY %s] mockimapd ready",
	    command_capabilities(s));
}

static void
on_timer(int fd, short what, void *arg)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	s->is_stalled = false;
	if (!s->has_greeted)
		greet(s);
	else
		run_line(s);
	session_work(s);
}

void
session_open(struct world *world, int fd, uint16_t peer_port, bool is_tls)
{
	struct session *s = xcalloc(1, sizeof(*s));
	struct transport_calls calls = { on_bytes, on_written, on_end, s };
	char text[16];

	s->world = world;
	s->state = STATE_GREETED;
	s->conn = ++world->last_conn;
	s->since_usecs = record_mono_usecs();
	s->peer_port = peer_port;
	s->transport = transport_new(world->base, fd, &calls);
	if (s->transport == NULL) {
		free(s);
		return;
	}
	s->in = transport_in(s->transport);
	s->timer = evtimer_new(world->base, on_timer, s);
	LIST_INSERT_HEAD(&world->sessions, s, entry);
	world->totals.accepted++;
	if (++world->totals.connections > world->totals.connections_peak)
		world->totals.connections_peak = world->totals.connections;
	snprintf(text, sizeof(text), "%u", peer_port);
	record_add(world->record, RECORD_OPEN, s->conn, NULL, text);
	if (is_tls && !transport_start_tls(s->transport, world->tls)) {
		session_close(s, "no TLS");
		return;
	}
	greet(s);
	/* With TLS it waits for the handshake: on_written. */
	if (!is_tls)
		session_work(s);
}

void
session_login(struct session *s, struct account *account)
{
	struct counters *own = &account->counters;

	s->account = account;
	s->state = STATE_LOGGED_IN;
	LIST_INSERT_HEAD(&account->sessions, s, account_entry);
	own->logins++;
	s->world->totals.logins++;
	if (++own->connections > own->connections_peak)
		own->connections_peak = own->connections;
	record_add(s->world->record, RECORD_LOGIN, s->conn, account, "");
}

void
session_close(struct session *s, const char *why)
{
	struct world *world = s->world;

	if (s->is_closed)
		return;
	if (s->is_idle)
		session_idle(s, false);
	session_unselect(s);
	s->is_closed = true;
	world->totals.connections--;
	if (s->account != NULL) {
		LIST_REMOVE(s, account_entry);
		s->account->counters.connections--;
	}
	record_add(world->record, RECORD_CLOSE, s->conn, s->account, why);
	LIST_REMOVE(s, entry);
	LIST_INSERT_HEAD(&world->dead, s, entry);
	event_active(world->reaper, EV_TIMEOUT, 0);
}

void
session_bye(struct session *s, const char *text)
{
	session_say(s, "* BYE %s", text);
	s->is_ending = true;
	session_flush(s);
}

void
session_reap(struct world *world)
{
	struct session *s;

	while ((s = LIST_FIRST(&world->dead)) != NULL) {
		LIST_REMOVE(s, entry);
		fetch_free(&s->fetch);
		transport_free(&s->transport);
		event_free(s->timer);
		buf_release(&s->out);
		buf_release(&s->line);
		free(s->view);
		free(s);
	}
}
