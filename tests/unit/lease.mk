# Unit tests of src/lease; see tests/unit/module.mk for how to add one.
check_PROGRAMS += test_lease
TESTS += test_lease
test_lease_SOURCES = tests/unit/test_lease.c
test_lease_LDADD = liblease.a libipc.a libbase.a $(HIREDIS_LIBS) \
	$(EVENT_LIBS) $(JANSSON_LIBS) $(UNIT_LIBS)
