# Unit tests of src/imap; see tests/unit/module.mk for how to add one.
IMAP_LIBS = libimap.a libnet.a libconf.a libbase.a $(ETPAN_LIBS) $(GNUTLS_LIBS) \
	$(CONFUSE_LIBS) $(UNIT_LIBS)

check_PROGRAMS += test_sanitize
TESTS += test_sanitize
test_sanitize_SOURCES = tests/unit/test_sanitize.c
test_sanitize_LDADD = libimap.a libnet.a libbase.a $(UNIT_LIBS)

check_PROGRAMS += test_imap
TESTS += test_imap
test_imap_SOURCES = tests/unit/test_imap.c \
	tests/unit/scripted_imapd.c tests/unit/scripted_imapd.h
test_imap_LDADD = $(IMAP_LIBS)

check_PROGRAMS += test_imap_open
TESTS += test_imap_open
test_imap_open_SOURCES = tests/unit/test_imap_open.c
test_imap_open_LDADD = $(IMAP_LIBS)

check_PROGRAMS += test_imap_tls
TESTS += test_imap_tls
test_imap_tls_SOURCES = tests/unit/test_imap_tls.c
test_imap_tls_LDADD = $(IMAP_LIBS)

# Tests beside a Dovecot of their own: programs named *.imap.
TEST_EXTENSIONS += .imap
IMAP_LOG_COMPILER = "$(srcdir)/tests/with-dovecot"
EXTRA_DIST += tests/with-dovecot

check_PROGRAMS += test_imap_dovecot.imap
TESTS += test_imap_dovecot.imap
test_imap_dovecot_imap_SOURCES = tests/unit/test_imap_dovecot.c
test_imap_dovecot_imap_LDADD = $(IMAP_LIBS)

# By hand: tests/with-dovecot ./bench_imap [MESSAGES [BYTES [CHILDREN]]]
EXTRA_PROGRAMS += bench_imap
bench_imap_SOURCES = scripts/bench/imap.c
bench_imap_LDADD = $(IMAP_LIBS)
