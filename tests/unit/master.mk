# Unit tests of src/master; see tests/unit/module.mk for how to add one.
check_PROGRAMS += test_policy test_budgets test_hosts test_pool
TESTS += test_policy test_budgets test_hosts test_pool
test_policy_SOURCES = tests/unit/test_policy.c
test_policy_LDADD = libmaster.a libconf.a libbase.a $(UNIT_LIBS)
test_budgets_SOURCES = tests/unit/test_budgets.c
test_budgets_LDADD = libmaster.a liblease.a libredis.a libconf.a libbase.a \
	$(UNIT_LIBS)
test_hosts_SOURCES = tests/unit/test_hosts.c
test_hosts_LDADD = libmaster.a libconf.a libbase.a $(UNIT_LIBS)
test_pool_SOURCES = tests/unit/test_pool.c
test_pool_LDADD = libmaster.a libproc.a libconf.a libbase.a $(UNIT_LIBS)
# A real master on a private Redis, with children that misbehave on purpose.
check_PROGRAMS += test_master
TESTS += test_master
test_master_SOURCES = tests/unit/test_master.c tests/unit/stage.c \
	tests/unit/stage.h
test_master_LDADD = libmaster.a liblease.a libredis.a libproc.a libipc.a libconf.a \
	libbase.a $(EVENT_LIBS) $(HIREDIS_LIBS) $(JANSSON_LIBS) \
	$(CONFUSE_LIBS) $(SODIUM_LIBS) $(UNIT_LIBS)
