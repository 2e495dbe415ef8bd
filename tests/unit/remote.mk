# Unit tests of src/remote; see tests/unit/module.mk for how to add one.
REMOTE_LIBS = libremote.a libconf.a libbase.a $(ETPAN_LIBS) $(GNUTLS_LIBS) \
	$(CONFUSE_LIBS) $(UNIT_LIBS)

check_PROGRAMS += test_mend
TESTS += test_mend
test_mend_SOURCES = tests/unit/test_mend.c
test_mend_LDADD = libremote.a libbase.a $(UNIT_LIBS)

check_PROGRAMS += test_remote
TESTS += test_remote
test_remote_SOURCES = tests/unit/test_remote.c \
	tests/unit/scripted_imapd.c tests/unit/scripted_imapd.h
test_remote_LDADD = $(REMOTE_LIBS)

check_PROGRAMS += test_remote_open
TESTS += test_remote_open
test_remote_open_SOURCES = tests/unit/test_remote_open.c
test_remote_open_LDADD = $(REMOTE_LIBS)

check_PROGRAMS += test_remote_tls
TESTS += test_remote_tls
test_remote_tls_SOURCES = tests/unit/test_remote_tls.c
test_remote_tls_LDADD = $(REMOTE_LIBS)

# Tests beside a Dovecot of their own: programs named *.imap.
TEST_EXTENSIONS += .imap
IMAP_LOG_COMPILER = "$(srcdir)/tests/with-dovecot"
EXTRA_DIST += tests/with-dovecot

check_PROGRAMS += test_remote_dovecot.imap
TESTS += test_remote_dovecot.imap
test_remote_dovecot_imap_SOURCES = tests/unit/test_remote_dovecot.c
test_remote_dovecot_imap_LDADD = $(REMOTE_LIBS)

# By hand: tests/with-dovecot ./bench_remote [MESSAGES [BYTES [CHILDREN]]]
EXTRA_PROGRAMS += bench_remote
bench_remote_SOURCES = scripts/bench/remote.c
bench_remote_LDADD = $(REMOTE_LIBS)
