/*
 * follow.c - progress of a backfill, for `account show -w`.
 *
 * Runs in: mailherdctl.  Blocks.
 *
 * The tables say what is done; sync.progress events say it sooner and name the
 * folder, and wake us.  Without Redis we look into the tables each second,
 * which is all the difference.
 */
#include "ctl/follow.h"

#include "base/clock.h"
#include "base/text.h"
#include "redis/events.h"

#include <bsd/string.h>
#include <inttypes.h>
#include <poll.h>
#include <sysexits.h>

#define REDRAW_MSECS 250   /* on a terminal */
#define LOOK_MSECS 1000	   /* at the tables, and for -j */
#define LINE_MSECS 5000	   /* to a file or pipe */

struct follow {
	struct ctl *ctl;
	char id[UUID_TEXT_SIZE];
	struct uuid account_id;
	struct lease_client *events; /* NULL: no Redis */
	char state[32];
	char mailbox[MSG_TEXT_SIZE]; /* of the last event */
	char trouble[256]; /* why nothing moves; "" when it does */
	bool has_given_up; /* the job is dead */
	int64_t done, total;
	int64_t first_done; /* what was there when we began to look */
	struct rate rate;
	int64_t started_msecs, looked_msecs, printed_msecs;
	bool is_drawn; /* a line without line end stands on the terminal */
};

/* --- arithmetic --------------------------------------------------------- */

void
rate_note(struct rate *rate, int64_t now_msecs, int64_t done)
{
	size_t last = (rate->next + RATE_SAMPLES - 1) % RATE_SAMPLES;

	/* Samples half a second apart: the window is about 8 s. */
	if (rate->n > 0 && now_msecs - rate->at_msecs[last] < 500)
		return;
	rate->at_msecs[rate->next] = now_msecs;
	rate->done[rate->next] = done;
	rate->next = (rate->next + 1) % RATE_SAMPLES;
	if (rate->n < RATE_SAMPLES)
		rate->n++;
}

double
rate_per_second(const struct rate *rate)
{
	size_t last = (rate->next + RATE_SAMPLES - 1) % RATE_SAMPLES;
	size_t first = rate->n < RATE_SAMPLES ? 0 : rate->next;
	int64_t msecs, done;

	if (rate->n < 2)
		return 0;
	msecs = rate->at_msecs[last] - rate->at_msecs[first];
	done = rate->done[last] - rate->done[first];
	return msecs > 0 && done > 0 ? (double)done * 1000 / (double)msecs : 0;
}

void
progress_bar(struct buf *out, int64_t done, int64_t total, size_t width)
{
	size_t full = 0;

	if (total > 0)
		full = (size_t)((double)done / (double)total * (double)width);
	if (full > width)
		full = width;
	buf_adds(out, display_tint(TINT_GOOD));
	for (size_t i = 0; i < full; i++)
		buf_adds(out, "\xe2\x94\x81"); /* heavy line */
	buf_adds(out, display_plain());
	buf_adds(out, display_tint(TINT_DIM));
	for (size_t i = full; i < width; i++)
		buf_adds(out, "\xe2\x94\x80"); /* light line */
	buf_adds(out, display_plain());
}

/* --- what is known ------------------------------------------------------ */

/* Tables and events both may lag; the larger figures are the newer ones. */
static void
follow_note(struct follow *f, int64_t done, int64_t total)
{
	if (done > f->done)
		f->done = done;
	if (total > f->total)
		f->total = total;
	if (f->done > f->total)
		f->total = f->done;
	rate_note(&f->rate, clock_mono_msecs(), f->done);
}

/*
 * State, messages stored, messages at the server as far as folders were looked
 * at, and of the newest bootstrap job: what holds it up, and whether it died.
 */
static const char look_sql[] =
    "SELECT a.state,"
    " (SELECT coalesce(sum(m.messages), 0)::bigint FROM mailboxes m"
    "  WHERE m.account_id = a.id),"
    " (SELECT coalesce(sum(greatest(m.server_messages, m.messages)),"
    "  0)::bigint FROM mailboxes m WHERE m.account_id = a.id),"
    " CASE WHEN j.state = 'queued' AND j.last_error <> ''"
    "   THEN 'tried again in ' || greatest(0,"
    "   ceil(extract(epoch FROM j.run_at - now())))::bigint || ' s: ' ||"
    "   j.last_error"
    "  WHEN j.state = 'queued' THEN 'waits for a jobs worker'"
    "  WHEN j.state = 'dead' THEN j.last_error"
    "  ELSE '' END,"
    " coalesce(j.state = 'dead', false)"
    " FROM accounts a LEFT JOIN LATERAL (SELECT * FROM jobs"
    "  WHERE account_id = a.id AND kind = 'sync_bootstrap_account'"
    "  ORDER BY state IN ('queued', 'running') DESC, created_at DESC"
    "  LIMIT 1) j ON true"
    " WHERE a.id = $1::uuid";

static void
take_row(struct follow *f, const char *const *cells)
{
	strlcpy(f->state, cells[0], sizeof(f->state));
	follow_note(
	    f, strtoll(cells[1], NULL, 10), strtoll(cells[2], NULL, 10));
	text_clean_line(f->trouble, sizeof(f->trouble), cells[3],
	    strlen(cells[3]));
	f->has_given_up = strcmp(cells[4], "t") == 0;
}

static int
follow_look(struct follow *f, struct err *err)
{
	const char *params[] = { f->id };
	struct arena *arena = arena_new("look");
	struct store_rows *rows;
	int rc = 0;

	if (store_query(f->ctl->store, arena, look_sql, params, 1, &rows,
	    err) == -1)
		rc = -1;
	else if (rows->n_rows == 0)
		strlcpy(f->state, "deleted", sizeof(f->state));
	else
		take_row(f, &ROWS_CELL(rows, 0, 0));
	f->looked_msecs = clock_mono_msecs();
	arena_free(&arena);
	return rc;
}

/* --- events ------------------------------------------------------------- */

static void
open_events(struct follow *f)
{
	static const char *const names[] = { "sync.progress",
		"account.state_changed" };
	struct err err = ERR_INIT;

	if (lease_client_open(&f->events, f->ctl->conf, &err) == 0 &&
	    lease_client_subscribe(f->events, names, N_COLUMNS(names), &err) ==
	    0)
		return;
	lease_client_close(&f->events);
	ctl_note("%s (following through the tables)", err.text);
}

/* Sets *changed_r when the account's state has changed. */
static void
take_event(struct follow *f, const char *message, bool *changed_r)
{
	struct err ignored = ERR_INIT;
	struct msg_event event;

	if (event_parse(message, strlen(message), &event, &ignored) == -1 ||
	    !uuid_is_equal(&event.account_id, &f->account_id))
		return;
	if (event.event != EVENT_PROGRESS) {
		*changed_r = true;
		return;
	}
	/* The event's own field may have cut a character. */
	text_clean_line(f->mailbox, sizeof(f->mailbox), event.name,
	    strlen(event.name));
	f->trouble[0] = '\0';
	follow_note(f, event.done, event.total);
}

/* Waits at most `msecs`, less when an event of interest comes. */
static void
wait_a_little(struct follow *f, int64_t msecs)
{
	int64_t until = clock_mono_msecs() + msecs, left;
	struct err err = ERR_INIT;
	bool changed = false;

	while (!changed && (left = until - clock_mono_msecs()) > 0) {
		struct arena *arena = arena_new("event");
		const char *message = NULL;

		if (f->events == NULL) {
			poll(NULL, 0, (int)left);
		} else if (lease_client_next(f->events, left, arena, &message,
		    &err) == -1) {
			lease_client_close(&f->events);
			ctl_note("%s (following through the tables)",
			    err.text);
		}
		if (message != NULL)
			take_event(f, message, &changed);
		arena_free(&arena);
	}
	if (changed)
		f->looked_msecs = 0;
}

/* --- printing ----------------------------------------------------------- */

/* "12,345 / 20,000  61 %  6,120 msg/s  1 s left" */
static void
add_figures(struct buf *out, const struct follow *f)
{
	char done[32], total[32], rate[32], left[32];
	double per_second = rate_per_second(&f->rate);

	if (f->total == 0) {
		if (*f->trouble == '\0')
			buf_adds(out, "looking for folders");
		return;
	}
	buf_addf(out, "%s / %s  %d %%",
	    format_count(done, sizeof(done), (uint64_t)f->done),
	    format_count(total, sizeof(total), (uint64_t)f->total),
	    (int)(f->done * 100 / f->total));
	if (per_second <= 0)
		return;
	buf_addf(out, "  %s msg/s", format_count(rate, sizeof(rate),
	    (uint64_t)(per_second + 0.5)));
	if (f->done < f->total)
		buf_addf(out, "  %s left", clock_format_span(left,
		    sizeof(left), (int64_t)((double)(f->total - f->done) /
		    per_second) + 1));
}

/* The folder under way, or what holds us up. */
static void
add_remark(struct buf *out, const struct follow *f, size_t width)
{
	const char *text = *f->trouble != '\0' ? f->trouble : f->mailbox;
	struct buf clean = BUF_INIT;

	if (*text == '\0')
		return;
	if (out->len > 0)
		buf_adds(out, "  ");
	display_clean(&clean, text);
	display_cut(out, buf_str(&clean), width);
	buf_release(&clean);
}

static void
follow_draw(struct follow *f)
{
	struct buf figures = BUF_INIT, line = BUF_INIT;
	size_t columns = display_columns(), bar = 40, used, room;

	add_figures(&figures, f);
	used = display_width(buf_str(&figures)) + 3;
	/* The bar gives way to a long remark, but not altogether. */
	room = columns > used + 12 ? columns - used - 12 : 8;
	add_remark(&figures, f, *f->trouble == '\0' && room > 20 ? 20 : room);
	used = display_width(buf_str(&figures)) + 3;
	if (columns < used + bar)
		bar = columns > used + 10 ? columns - used : 10;
	progress_bar(&line, f->done, f->total, bar);
	buf_addf(&line, "  %s", buf_str(&figures));
	printf("\r\033[K%s", line.data);
	fflush(stdout);
	f->is_drawn = true;
	buf_release(&figures);
	buf_release(&line);
}

static void
follow_print_json(struct follow *f)
{
	double per_second = rate_per_second(&f->rate);
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I}",
	    "account_id", f->id, "state", f->state, "mailbox", f->mailbox,
	    "trouble", f->trouble,
	    "done", (json_int_t)f->done, "total", (json_int_t)f->total,
	    "per_second", (json_int_t)(per_second + 0.5));

	json_object_set_new(o, "seconds_left", per_second > 0
	    ? json_integer((json_int_t)((double)(f->total - f->done) /
	    per_second)) : json_null());
	ctl_print_json(o);
	fflush(stdout);
}

static void
follow_print_line(struct follow *f)
{
	struct buf figures = BUF_INIT;

	add_figures(&figures, f);
	add_remark(&figures, f, SIZE_MAX);
	printf("%s  %s\n", f->state, buf_str(&figures));
	fflush(stdout);
	buf_release(&figures);
}

static void
print_progress(struct follow *f)
{
	int64_t now = clock_mono_msecs();
	bool is_terminal = display_is_terminal();
	int64_t pause = f->ctl->is_json ? LOOK_MSECS
	    : is_terminal ? 0 : LINE_MSECS;

	if (f->printed_msecs != 0 && now - f->printed_msecs < pause)
		return;
	if (f->ctl->is_json)
		follow_print_json(f);
	else if (is_terminal)
		follow_draw(f);
	else
		follow_print_line(f);
	f->printed_msecs = now;
}

/* --- the loop ----------------------------------------------------------- */

static bool
is_running(const struct follow *f)
{
	return !f->has_given_up && (strcmp(f->state, "new") == 0 ||
	    strcmp(f->state, "bootstrapping") == 0);
}

static void
print_end(struct follow *f)
{
	char count[32], rate[32];
	int64_t msecs = clock_mono_msecs() - f->started_msecs;
	int64_t seen = f->done - f->first_done;

	if (f->is_drawn)
		fputs("\r\033[K", stdout);
	if (f->ctl->is_json || f->printed_msecs == 0)
		return;
	printf("%s%s%s: %s messages",
	    display_tint(tint_account_state(f->state)), f->state,
	    display_plain(),
	    format_count(count, sizeof(count), (uint64_t)f->done));
	if (seen > 0 && msecs > 0)
		printf(", %s of them in the last %.1f s (%s msg/s)",
		    format_count(count, sizeof(count), (uint64_t)seen),
		    (double)msecs / 1000, format_count(rate, sizeof(rate),
		    (uint64_t)(seen * 1000 / msecs)));
	fputs("\n\n", stdout);
}

int
follow_backfill(struct ctl *ctl, const struct uuid *id, struct err *err)
{
	struct follow f = { .ctl = ctl, .account_id = *id };
	int rc = 0;

	uuid_format(id, f.id);
	f.started_msecs = clock_mono_msecs();
	/* Subscribe first: what happens between the two is not lost. */
	open_events(&f);
	while ((rc = follow_look(&f, err)) == 0 && is_running(&f)) {
		if (f.printed_msecs == 0)
			f.first_done = f.done;
		do {
			print_progress(&f);
			wait_a_little(&f, REDRAW_MSECS);
		} while (f.looked_msecs != 0 && clock_mono_msecs() -
		    f.looked_msecs < LOOK_MSECS);
	}
	print_end(&f);
	lease_client_close(&f.events);
	if (rc == 0 && strcmp(f.state, "live") != 0)
		rc = EX_UNAVAILABLE;
	return rc;
}
