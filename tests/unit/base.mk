# Unit tests of src/base; see tests/unit/module.mk for how to add one.
check_PROGRAMS += test_base
TESTS += test_base
test_base_SOURCES = tests/unit/test_base.c
test_base_LDADD = libbase.a $(UNIT_LIBS)
