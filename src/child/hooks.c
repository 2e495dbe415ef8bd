/*
 * hooks.c - what sync needs of a child, by way of the channel.
 *
 * Runs in: hot, pool and job children.  Blocking.
 */
#include "child/hooks.h"

#include "base/clock.h"
#include "child/child.h"
#include "child/limits.h"
#include "mime/mime.h"
#include "imap/imap.h"

#include <sysexits.h>

/* How long a child stands in line for a budget. */
#define WAIT_MSECS 30000
#define WAIT_LONG_MSECS 120000 /* for its turn among writers and parsers */

static const struct conf *the_conf;

void
child_init(const struct conf *conf, const struct quirks_table *quirks)
{
	struct err err = ERR_INIT;

	the_conf = conf;
	mime_init();
	if (imap_init(conf->ca_file, &err) == -1)
		die(EX_CONFIG, "%s", err.text);
	imap_set_quirks(quirks);
}

void
child_refresh(void)
{
	struct err err = ERR_INIT;

	if (imap_renew_trust(the_conf->ca_file, &err) == -1)
		log_error(NULL, "%s; the certificates that were read before "
		    "stay", err.text);
}

const struct conf *
child_conf(void)
{
	return the_conf;
}

static int
hooks_on_want(void *arg, enum resource resource, const char *host,
    uint16_t port, uint32_t *id_r, struct err *err)
{
	struct child_hooks *h = arg;
	bool is_ours = resource == RESOURCE_DATABASE ||
	    resource == RESOURCE_PARSE;

	return runtime_want(h->rt, resource, host, port,
	    h->is_idle && resource == RESOURCE_SOCKET,
	    is_ours ? WAIT_LONG_MSECS : WAIT_MSECS, id_r, err);
}

static void
hooks_on_give_back(void *arg, uint32_t id)
{
	struct child_hooks *h = arg;

	runtime_give_back(h->rt, id);
}

static int
hooks_on_may_go_on(void *arg, struct err *err)
{
	struct child_hooks *h = arg;

	return runtime_may_go_on(h->rt, err);
}

static void
hooks_on_note(void *arg, const struct slot_note *note)
{
	struct child_hooks *h = arg;

	limits_step(note->step);
	if (h->rt->slot != SLOT_NONE)
		slot_write_note(h->rt->slot, note);
}

static void
hooks_on_emit(void *arg, const struct msg_event *event)
{
	struct child_hooks *h = arg;

	runtime_send(h->rt, MSG_EVENT, event);
}

static void
hooks_on_activity(void *arg, const char *text)
{
	struct child_hooks *h = arg;

	runtime_activity(h->rt, "%s", text);
	proc_set_title("%s %s %s", child_kind_name(h->kind), h->email, text);
}

static int
hooks_on_unseal(void *arg, const struct seal_bond *bond,
    const struct sealed *sealed, char *secret_r, size_t size, struct err *err)
{
	struct child_hooks *h = arg;

	return runtime_unseal(h->rt, bond, sealed, secret_r, size, err);
}

static bool
on_must_yield(void *arg)
{
	const struct child_hooks *h = arg;

	return h->rt->must_yield;
}

static int
on_brief(void *arg, struct msg_briefing *briefing_r)
{
	struct child_hooks *h = arg;

	return runtime_brief(h->rt, briefing_r);
}

void
child_hooks_init(struct child_hooks *h, struct runtime *rt,
    enum child_kind kind)
{
	memset(h, 0, sizeof(*h));
	h->rt = rt;
	h->kind = kind;
	h->hooks = (struct account_hooks){
	    .want = hooks_on_want,
	    .give_back = hooks_on_give_back,
	    .may_go_on = hooks_on_may_go_on,
	    .note = hooks_on_note,
	    .emit = hooks_on_emit,
	    .activity = hooks_on_activity,
	    .unseal = hooks_on_unseal,
	    .must_yield = on_must_yield,
	    .brief = kind == KIND_HOT ? on_brief : NULL,
	    .arg = h,
	};
}

/* The account's row learns of the failure here, the master with the message. */
static void
describe_failure(struct runtime *rt, struct session *s,
    const struct err *failure, struct msg_pass_done *done)
{
	struct err err = ERR_INIT;
	bool is_condemned = false;

	done->outcome = failure->kind;
	snprintf(done->text, sizeof(done->text), "%s", failure->text);
	if (failure->kind == ERR_GONE)
		done->account_left_live = 1;
	if (account_record_failure(
		s, failure, &is_condemned, &done->retry_after_secs, &err) == -1)
		log_warn(&rt->log, "failure not recorded: %s", err.text);
	done->condemned = is_condemned;
	done->is_limit = failure->is_limit;
}

void
child_report_pass(struct runtime *rt, struct session *s,
    const struct uuid *account_id, int64_t epoch, const struct err *failure,
    int64_t started_mono_msecs)
{
	struct msg_pass_done done;
	struct sync_totals totals;

	memset(&done, 0, sizeof(done));
	done.account_id = *account_id;
	done.epoch = epoch;
	if (failure != NULL)
		describe_failure(rt, s, failure, &done);
	sync_totals_take(s, &totals);
	done.folders_polled = totals.folders_polled;
	done.messages_new = totals.created;
	done.messages_updated = totals.updated;
	done.messages_deleted = totals.deleted;
	done.last_mail_secs = totals.last_mail_secs;
	done.round_trips = (int64_t)totals.round_trips;
	done.is_slowed = totals.is_slowed;
	done.peek = totals.peek;
	done.inbox_generation = totals.inbox_generation;
	done.inbox_mark = totals.inbox_mark;
	done.msecs = clock_mono_msecs() - started_mono_msecs;
	runtime_send(rt, MSG_PASS_DONE, &done);
}
