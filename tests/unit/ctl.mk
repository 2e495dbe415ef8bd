# Unit tests of src/ctl; see tests/unit/module.mk for how to add one.
check_PROGRAMS += test_table test_ctl
TESTS += test_table test_ctl
test_table_SOURCES = tests/unit/test_table.c
test_table_LDADD = libctl.a libbase.a $(JANSSON_LIBS) $(UNIT_LIBS)
# The whole program but main(): its table names every command.
test_ctl_SOURCES = tests/unit/test_ctl.c
test_ctl_LDADD = libctl.a libblob.a libstore.a libmail.a liblease.a libredis.a libproc.a libipc.a libconf.a \
	libbase.a $(EVENT_LIBS) $(HIREDIS_LIBS) $(PQ_LIBS) $(GNUTLS_LIBS) \
	$(CONFUSE_LIBS) $(JANSSON_LIBS) $(SODIUM_LIBS) $(ZSTD_LIBS) \
	$(UNIT_LIBS)

# The commands against a private PostgreSQL and Redis.
TESTS += tests/unit/test_commands.pg
EXTRA_DIST += tests/unit/test_commands.pg
