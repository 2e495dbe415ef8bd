# Unit tests of src/master; see tests/unit/module.mk for how to add one.
check_PROGRAMS += test_policy test_grants
TESTS += test_policy test_grants
test_policy_SOURCES = tests/unit/test_policy.c
test_policy_LDADD = libmaster.a libbase.a $(UNIT_LIBS)
test_grants_SOURCES = tests/unit/test_grants.c
test_grants_LDADD = libmaster.a liblease.a libbase.a $(UNIT_LIBS)
