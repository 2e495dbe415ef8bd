/*
 * test_sync_plan.c - runs the cases of tests/sync-cases.
 */
#include "sync/plan.h"

#include "base/xmem.h"

#include <check.h>
#include <dirent.h>

#define NOW 1000000

struct scene {
	char title[160];
	struct folder folder;
	struct view view;
	unsigned caps;
};

static uint64_t
number_after(const char *line, const char *word)
{
	char pattern[32];
	const char *p;

	snprintf(pattern, sizeof(pattern), " %s ", word);
	p = strstr(line, pattern);
	return p == NULL ? 0 : strtoull(p + strlen(pattern), NULL, 10);
}

static bool
has_word(const char *line, const char *word)
{
	const char *p = line;
	size_t len = strlen(word);

	while ((p = strstr(p, word)) != NULL) {
		bool starts = p == line || p[-1] == ' ';

		if (starts && (p[len] == ' ' || p[len] == '\0'))
			return true;
		p += len;
	}
	return false;
}

static void
read_we(struct scene *sc, const char *line)
{
	struct cursor *c = &sc->folder.cursor;

	sc->folder.is_selectable = !has_word(line, "noselect");
	sc->folder.is_remapping = has_word(line, "remapping");
	sc->folder.parked_until_secs = has_word(line, "parked") ? NOW + 1 : 0;
	sc->folder.no_condstore = has_word(line, "distrusted") ? "lied" : "";
	/* ... until now, or "no longer" */
	sc->folder.no_condstore_until_secs = has_word(line, "longer") ? NOW :
	    NOW + 1;
	sc->folder.no_uidnext_until_secs =
	    has_word(line, "uidnext-distrusted") ? NOW + 1 : NOW;
	sc->folder.doubt = has_word(line, "renamed") ? "renamed" : "";
	c->uidvalidity = (uint32_t)number_after(line, "uidvalidity");
	c->uidnext = (uint32_t)number_after(line, "uidnext");
	c->highestmodseq = number_after(line, "modseq");
	c->messages = (uint32_t)number_after(line, "messages");
	/* Rows: as many, unless told; looked at just now, or "long ago". */
	sc->folder.stored = has_word(line, "rows") ?
	    (int64_t)number_after(line, "rows") : c->messages;
	sc->folder.explained = (int64_t)number_after(line, "explained");
	sc->folder.last_poll_secs = has_word(line, "ago") ? 0 : NOW;
	c->backfill_below = (uint32_t)number_after(line, "backfill");
}

static void
read_view(struct scene *sc, const char *line, bool is_selected)
{
	struct view *v = &sc->view;

	v->is_selected = is_selected;
	v->is_known = !has_word(line, "unknown");
	v->uidvalidity = (uint32_t)number_after(line, "uidvalidity");
	v->uidnext = (uint32_t)number_after(line, "uidnext");
	v->highestmodseq = number_after(line, "modseq");
	v->messages = (uint32_t)number_after(line, "messages");
}

static void
judge(const struct scene *sc, const char *line)
{
	struct plan plan = plan_folder(&sc->folder, &sc->view, sc->caps, NOW);
	const char *name = plan_action_name(plan.action);

	ck_assert_msg(has_word(line, name), "%s: %s instead of%s", sc->title,
	    name, line);
	ck_assert_msg((plan.distrust != NULL) == has_word(line, "distrust"),
	    "%s: distrust is %s", sc->title,
	    plan.distrust == NULL ? "not recorded" : plan.distrust);
	ck_assert_msg((plan.doubt != NULL) == has_word(line, "doubt"),
	    "%s: doubt is %s", sc->title,
	    plan.doubt == NULL ? "none" : plan.doubt);
	/* Parked folders are left alone whatever is still to be done. */
	if (plan.action != PLAN_PARKED)
		ck_assert_msg(plan.needs_backfill ==
		    has_word(line, "backfill"), "%s: backfill is %d",
		    sc->title, plan.needs_backfill);
}

static unsigned
run_file(const char *path)
{
	FILE *f = fopen(path, "r");
	struct scene sc;
	char line[512];
	unsigned n = 0;

	ck_assert_msg(f != NULL, "%s cannot be read", path);
	memset(&sc, 0, sizeof(sc));
	while (fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "case ", 5) == 0) {
			memset(&sc, 0, sizeof(sc));
			snprintf(sc.title, sizeof(sc.title), "%s", line + 5);
		} else if (strncmp(line, "we ", 3) == 0)
			read_we(&sc, line + 2);
		else if (strncmp(line, "status ", 7) == 0)
			read_view(&sc, line + 6, false);
		else if (strncmp(line, "select ", 7) == 0)
			read_view(&sc, line + 6, true);
		else if (strncmp(line, "caps ", 5) == 0) {
			if (has_word(line, "condstore"))
				sc.caps |= IMAP_CONDSTORE;
			if (has_word(line, "qresync"))
				sc.caps |= IMAP_QRESYNC;
		} else if (strncmp(line, "expect ", 7) == 0) {
			judge(&sc, line + 6);
			n++;
		} else
			ck_assert_msg(line[0] == '#' || line[0] == '\0',
			    "%s: what is \"%s\"?", path, line);
	}
	fclose(f);
	return n;
}

START_TEST(every_case_is_planned_as_it_says)
{
	DIR *dir = opendir(SYNC_CASES);
	struct dirent *entry;
	char path[512];
	unsigned n = 0;

	ck_assert_msg(dir != NULL, "%s cannot be read", SYNC_CASES);
	while ((entry = readdir(dir)) != NULL) {
		const char *dot = strrchr(entry->d_name, '.');

		if (dot == NULL || strcmp(dot, ".case") != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", SYNC_CASES,
		    entry->d_name);
		n += run_file(path);
	}
	closedir(dir);
	ck_assert_uint_gt(n, 30);
}
END_TEST

START_TEST(select_is_given_the_cursor_only_when_it_can_be_believed)
{
	struct folder f = { .no_condstore = "", .is_selectable = true };
	unsigned both = IMAP_CONDSTORE | IMAP_QRESYNC;

	ck_assert_ptr_null(plan_known(&f, both, NOW));
	f.cursor.uidvalidity = 7;
	ck_assert_ptr_null(plan_known(&f, both, NOW));
	f.cursor.highestmodseq = 5;
	ck_assert_ptr_eq(plan_known(&f, both, NOW), &f.cursor);
	ck_assert_ptr_null(plan_known(&f, IMAP_CONDSTORE, NOW));
	f.no_condstore = "it lied";
	f.no_condstore_until_secs = NOW + 1;
	ck_assert_ptr_null(plan_known(&f, both, NOW));
	f.no_condstore_until_secs = NOW;
	ck_assert_ptr_eq(plan_known(&f, both, NOW), &f.cursor);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sync plan");
	TCase *tc = tcase_create("plan");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, every_case_is_planned_as_it_says);
	tcase_add_test(tc,
	    select_is_given_the_cursor_only_when_it_can_be_believed);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
