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
