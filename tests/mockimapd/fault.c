/*
 * fault.c - scripted faults: what goes wrong, for whom, when, how often.
 *
 * Runs in: mockimapd.  Never blocks.
 *
 * A fault that has struck its last time stays in the list with its count, so
 * that a test can see that it did.
 */
#include "config.h"

#include "fault.h"

#include "base/xmem.h"

#include <bsd/string.h>

#include <fnmatch.h>
#include <strings.h>

const char *const fault_names[FAULT_KIND_COUNT] = {
#define X(symbol, name) [symbol] = name,
	FAULT_KINDS(X)
#undef X
};

struct faults {
	STAILQ_HEAD(, fault) list;
	unsigned last_id;
};

struct faults *
faults_new(void)
{
	struct faults *faults = xcalloc(1, sizeof(*faults));

	STAILQ_INIT(&faults->list);
	return faults;
}

void
faults_free(struct faults **faults)
{
	if (*faults != NULL)
		fault_clear(*faults, 0);
	free(*faults);
	*faults = NULL;
}

static bool
kind_parse(const char *name, enum fault_kind *kind_r)
{
	for (unsigned i = 0; name != NULL && i < FAULT_KIND_COUNT; i++)
		if (strcmp(name, fault_names[i]) == 0) {
			*kind_r = (enum fault_kind)i;
			return true;
		}
	return false;
}

static void
take_text(char *out, size_t size, const json_t *words, const char *key,
    const char *preset)
{
	const char *s = json_string_value(json_object_get(words, key));

	strlcpy(out, s != NULL ? s : preset, size);
}

static int64_t
take_number(const json_t *words, const char *key, int64_t preset)
{
	const json_t *value = json_object_get(words, key);

	return json_is_integer(value) ? json_integer_value(value) : preset;
}

static bool
is_lie(const char *text)
{
	return strcmp(text, "zero") == 0 || strcmp(text, "none") == 0 ||
	    strcmp(text, "frozen") == 0 || strcmp(text, "huge") == 0;
}

struct fault *
fault_add(struct faults *faults, const json_t *words, const char **why_r)
{
	struct fault *fault;
	enum fault_kind kind;

	if (!kind_parse(json_string_value(json_object_get(words, "kind")),
		&kind)) {
		*why_r = "no such kind of fault";
		return NULL;
	}
	fault = xcalloc(1, sizeof(*fault));
	fault->kind = kind;
	take_text(fault->account, sizeof(fault->account), words, "account",
	    "*");
	take_text(fault->at, sizeof(fault->at), words, "at",
	    kind == FAULT_SILENT ? "IDLE" : "*");
	take_text(fault->match, sizeof(fault->match), words, "match", "");
	take_text(fault->text, sizeof(fault->text), words, "text", "");
	fault->skip = take_number(words, "skip", 0);
	fault->times = take_number(words, "times", -1);
	fault->bytes = take_number(words, "bytes", 0);
	fault->msecs = take_number(words, "msecs", 0);
	if ((kind == FAULT_MODSEQ && !is_lie(fault->text)) ||
	    ((kind == FAULT_ANSWER || kind == FAULT_SAY) &&
		fault->text[0] == '\0') || fault->bytes < 0 ||
	    ((kind == FAULT_SLOW || kind == FAULT_GARBAGE) &&
		fault->bytes == 0)) {
		*why_r = "this kind of fault needs another text or bytes";
		free(fault);
		return NULL;
	}
	fault->id = ++faults->last_id;
	STAILQ_INSERT_TAIL(&faults->list, fault, entry);
	return fault;
}

size_t
fault_clear(struct faults *faults, unsigned id)
{
	struct fault *fault, *next;
	size_t n = 0;

	STAILQ_FOREACH_SAFE(fault, &faults->list, entry, next) {
		if (id != 0 && fault->id != id)
			continue;
		STAILQ_REMOVE(&faults->list, fault, fault, entry);
		free(fault);
		n++;
	}
	return n;
}

json_t *
faults_list(const struct faults *faults)
{
	json_t *list = json_array();
	struct fault *fault;

	STAILQ_FOREACH(fault, &faults->list, entry)
		json_array_append_new(list, json_pack(
		    "{s:i,s:s,s:s,s:s,s:I,s:I}", "id", (int)fault->id,
		    "kind", fault_names[fault->kind], "account",
		    fault->account, "at", fault->at, "times",
		    (json_int_t)fault->times, "struck",
		    (json_int_t)fault->struck));
	return list;
}

static bool
is_account(const struct fault *fault, const char *login)
{
	return fnmatch(fault->account, login != NULL ? login : "", 0) == 0;
}

/* "*" is any command, not the connection. */
static bool
is_at(const struct fault *fault, const char *at)
{
	if (strcmp(fault->at, "*") == 0)
		return strcmp(at, "connect") != 0;
	return strcasecmp(fault->at, at) == 0;
}

bool
fault_is_lie(enum fault_kind kind)
{
	return kind == FAULT_MODSEQ || kind == FAULT_SIZE ||
	    kind == FAULT_UIDNEXT || kind == FAULT_EXISTS;
}

const struct fault *
fault_strike(struct faults *faults, const char *login, const char *at,
    const char *arguments)
{
	struct fault *fault;

	STAILQ_FOREACH(fault, &faults->list, entry) {
		if (fault_is_lie(fault->kind) || fault->times == 0 ||
		    !is_at(fault, at) || !is_account(fault, login) ||
		    (fault->match[0] != '\0' &&
			fnmatch(fault->match, arguments, 0) != 0))
			continue;
		if (fault->skip > 0) {
			fault->skip--;
			continue;
		}
		if (fault->times > 0)
			fault->times--;
		fault->struck++;
		return fault;
	}
	return NULL;
}

const struct fault *
fault_lie(const struct faults *faults, enum fault_kind kind,
    const char *login)
{
	struct fault *fault;

	STAILQ_FOREACH(fault, &faults->list, entry)
		if (fault->kind == kind && is_account(fault, login))
			return fault;
	return NULL;
}
