# Unit tests (Check).  One program per module, linking little: a long list of
# libraries tells you something.  Each area has its fragment; a test there is
#
#	check_PROGRAMS += test_arena
#	TESTS += test_arena
#	test_arena_SOURCES = tests/unit/test_arena.c
#	test_arena_LDADD = libbase.a $(UNIT_LIBS)
#
# Tests that need PostgreSQL run under tests/with-postgres (store.mk).
#
# EXTRA_PROGRAMS are benchmarks, built and run by scripts/bench.
EXTRA_PROGRAMS =
UNIT_LIBS = $(CHECK_LIBS) $(BSD_LIBS) -lpthread -lm

# The longest first: it mostly waits, and with -j the others run meanwhile.
include $(top_srcdir)/tests/unit/master.mk
include $(top_srcdir)/tests/unit/base.mk
include $(top_srcdir)/tests/unit/conf.mk
include $(top_srcdir)/tests/unit/ipc.mk
include $(top_srcdir)/tests/unit/proc.mk
include $(top_srcdir)/tests/unit/lease.mk
include $(top_srcdir)/tests/unit/store.mk
include $(top_srcdir)/tests/unit/imap.mk
include $(top_srcdir)/tests/unit/mime.mk
include $(top_srcdir)/tests/unit/sync.mk
include $(top_srcdir)/tests/unit/child.mk
include $(top_srcdir)/tests/unit/ctl.mk

# For whoever runs only some of them (scripts/check).
.PHONY: list-tests
list-tests:
	@echo $(TESTS)
