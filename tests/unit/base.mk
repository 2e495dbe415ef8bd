# Unit tests of src/base; see tests/unit/module.mk for how to add one.
check_PROGRAMS += test_base
TESTS += test_base
test_base_SOURCES = tests/unit/test_base.c
test_base_LDADD = libbase.a $(UNIT_LIBS)
check_PROGRAMS += test_log
TESTS += test_log
test_log_SOURCES = tests/unit/test_log.c
test_log_LDADD = libbase.a $(UNIT_LIBS) -lutil
