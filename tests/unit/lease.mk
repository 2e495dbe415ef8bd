# Unit tests of src/lease; see tests/unit/module.mk for how to add one.
check_PROGRAMS += test_lease
TESTS += test_lease
test_lease_SOURCES = tests/unit/test_lease.c
test_lease_LDADD = liblease.a libredis.a libipc.a libbase.a $(HIREDIS_LIBS) \
	$(EVENT_LIBS) $(JANSSON_LIBS) $(UNIT_LIBS)
# A private Redis on a free loopback port.
check_PROGRAMS += test_redis
TESTS += test_redis
test_redis_SOURCES = tests/unit/test_redis.c
test_redis_LDADD = liblease.a libredis.a libipc.a libbase.a $(HIREDIS_LIBS) \
	$(EVENT_LIBS) $(JANSSON_LIBS) $(UNIT_LIBS)
# A private Redis on a socket of its own.
check_PROGRAMS += test_keeper
TESTS += test_keeper
test_keeper_SOURCES = tests/unit/test_keeper.c
test_keeper_LDADD = liblease.a libredis.a libipc.a libbase.a $(HIREDIS_LIBS) \
	$(EVENT_LIBS) $(JANSSON_LIBS) $(UNIT_LIBS)
# By scripts/bench/lease: the real code with 10,000 leases.
EXTRA_PROGRAMS += bench_lease
bench_lease_SOURCES = scripts/bench/lease.c
bench_lease_LDADD = liblease.a libredis.a libipc.a libbase.a $(HIREDIS_LIBS) \
	$(EVENT_LIBS) $(JANSSON_LIBS)
