# Unit tests of src/store; see tests/unit/module.mk for how to add one.

check_PROGRAMS += test_blob
TESTS += test_blob
test_blob_SOURCES = tests/unit/test_blob.c
test_blob_LDADD = libstore.a libbase.a $(GNUTLS_LIBS) $(ZSTD_LIBS) $(UNIT_LIBS)
check_PROGRAMS += test_blob_gc
TESTS += test_blob_gc
test_blob_gc_SOURCES = tests/unit/test_blob_gc.c
test_blob_gc_LDADD = $(test_blob_LDADD)
# By hand: make bench_blob && ./bench_blob DIR
EXTRA_PROGRAMS = bench_blob
bench_blob_SOURCES = tests/unit/bench_blob.c
bench_blob_LDADD = libstore.a libbase.a $(GNUTLS_LIBS) $(ZSTD_LIBS) $(BSD_LIBS)
