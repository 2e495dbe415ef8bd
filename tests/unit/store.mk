# Unit tests of src/store; see tests/unit/module.mk for how to add one.

check_PROGRAMS += test_blob
TESTS += test_blob
test_blob_SOURCES = tests/unit/test_blob.c
test_blob_LDADD = libblob.a libmail.a libbase.a $(GNUTLS_LIBS) $(ZSTD_LIBS) $(UNIT_LIBS)
check_PROGRAMS += test_blob_gc
TESTS += test_blob_gc
test_blob_gc_SOURCES = tests/unit/test_blob_gc.c
test_blob_gc_LDADD = $(test_blob_LDADD)
# By hand: make bench_blob && ./bench_blob DIR
EXTRA_PROGRAMS += bench_blob
bench_blob_SOURCES = tests/unit/bench_blob.c
bench_blob_LDADD = libblob.a libmail.a libbase.a $(GNUTLS_LIBS) $(ZSTD_LIBS) $(BSD_LIBS)

# Tests beside a PostgreSQL of their own: programs named *.pg.  Quoted, for
# the build directory may have a blank in its path.
TEST_EXTENSIONS = .pg
PG_LOG_COMPILER = "$(srcdir)/tests/with-postgres"
EXTRA_DIST += tests/with-postgres
STORE_TEST_LIBS = libblob.a libstore.a libmail.a libbase.a $(PQ_LIBS) $(SODIUM_LIBS) \
	$(GNUTLS_LIBS) $(ZSTD_LIBS) $(UNIT_LIBS)
STORE_TEST_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests/unit \
	-DSCHEMA_DIR='"$(abs_top_srcdir)/etc/schema"'

check_PROGRAMS += test_store.pg test_store_mail.pg test_store_places.pg test_connect.pg
TESTS += test_store.pg test_store_mail.pg test_store_places.pg test_connect.pg
test_store_pg_SOURCES = tests/unit/test_store.c \
	tests/unit/store_world.c tests/unit/store_world.h
test_store_pg_CPPFLAGS = $(STORE_TEST_CPPFLAGS)
test_store_pg_LDADD = $(STORE_TEST_LIBS)
test_store_mail_pg_SOURCES = tests/unit/test_store_mail.c \
	tests/unit/store_world.c tests/unit/store_world.h
test_store_mail_pg_CPPFLAGS = $(STORE_TEST_CPPFLAGS)
test_store_mail_pg_LDADD = $(STORE_TEST_LIBS)
test_store_places_pg_SOURCES = tests/unit/test_store_places.c \
	tests/unit/store_world.c tests/unit/store_world.h
test_store_places_pg_CPPFLAGS = $(STORE_TEST_CPPFLAGS)
test_store_places_pg_LDADD = $(STORE_TEST_LIBS)
test_connect_pg_SOURCES = tests/unit/test_connect.c \
	tests/unit/store_world.c
test_connect_pg_CPPFLAGS = $(STORE_TEST_CPPFLAGS)
test_connect_pg_LDADD = $(STORE_TEST_LIBS)
check_PROGRAMS += test_briefing.pg
TESTS += test_briefing.pg
test_briefing_pg_SOURCES = tests/unit/test_briefing.c \
	tests/unit/store_world.c tests/unit/store_world.h
test_briefing_pg_CPPFLAGS = $(STORE_TEST_CPPFLAGS)
test_briefing_pg_LDADD = libsync.a libaccount.a libmime.a libimap.a libnet.a libblob.a libstore.a libmail.a libproc.a \
	libipc.a libconf.a $(STORE_TEST_LIBS) $(ETPAN_LIBS) $(GMIME_LIBS) \
	$(CONFUSE_LIBS)
# By hand, under tests/with-postgres: bench_ingest SCHEMA_DIR [MESSAGES [BATCH]]
EXTRA_PROGRAMS += bench_ingest
bench_ingest_SOURCES = scripts/bench/ingest.c
bench_ingest_LDADD = libblob.a libstore.a libmail.a libbase.a $(PQ_LIBS) $(SODIUM_LIBS) \
	$(ZSTD_LIBS) $(BSD_LIBS)
