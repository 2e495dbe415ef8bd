# Unit tests of src/sync; see tests/unit/module.mk for how to add one.
# tests/sync-cases/*.case are the table that test_sync_plan runs.
check_PROGRAMS += test_sync_plan test_sync_folders test_sync_compare \
	test_sync_missing
TESTS += test_sync_plan test_sync_folders test_sync_compare test_sync_missing

test_sync_plan_SOURCES = tests/unit/test_sync_plan.c
test_sync_plan_CPPFLAGS = $(AM_CPPFLAGS) \
	-DSYNC_CASES='"$(top_srcdir)/tests/sync-cases"'
test_sync_plan_LDADD = libsync.a libaccount.a libbase.a $(UNIT_LIBS)
test_sync_folders_SOURCES = tests/unit/test_sync_folders.c
test_sync_folders_LDADD = libsync.a libaccount.a libblob.a libstore.a libmail.a libbase.a $(PQ_LIBS) \
	$(SODIUM_LIBS) $(ZSTD_LIBS) $(UNIT_LIBS)
test_sync_compare_SOURCES = tests/unit/test_sync_compare.c
test_sync_compare_LDADD = libsync.a libaccount.a libbase.a $(UNIT_LIBS)
test_sync_missing_SOURCES = tests/unit/test_sync_missing.c
test_sync_missing_LDADD = libsync.a libaccount.a libbase.a $(UNIT_LIBS)

dist_check_DATA += \
	tests/sync-cases/compare.case \
	tests/sync-cases/condstore.case \
	tests/sync-cases/first.case \
	tests/sync-cases/status.case \
	tests/sync-cases/uidnext.case \
	tests/sync-cases/uidvalidity.case
