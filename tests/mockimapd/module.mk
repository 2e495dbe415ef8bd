# mockimapd: an IMAP server for tests; see README.md beside this file.
# Needed by the integration tests, not by anything installed.
noinst_PROGRAMS += mockimapd
mockimapd_SOURCES = \
	tests/mockimapd/commands.c \
	tests/mockimapd/control.c tests/mockimapd/control.h \
	tests/mockimapd/control_look.c \
	tests/mockimapd/control_mail.c \
	tests/mockimapd/fault.c tests/mockimapd/fault.h \
	tests/mockimapd/fetch.c \
	tests/mockimapd/folders.c \
	tests/mockimapd/mail.c tests/mockimapd/mail.h \
	tests/mockimapd/mailbox.c tests/mockimapd/mailbox.h \
	tests/mockimapd/main.c \
	tests/mockimapd/messages.c \
	tests/mockimapd/parse.c tests/mockimapd/parse.h \
	tests/mockimapd/record.c tests/mockimapd/record.h \
	tests/mockimapd/search.c \
	tests/mockimapd/select.c \
	tests/mockimapd/session.c tests/mockimapd/session.h \
	tests/mockimapd/traffic.c tests/mockimapd/traffic.h \
	tests/mockimapd/transport.c tests/mockimapd/transport.h \
	tests/mockimapd/view.c \
	tests/mockimapd/world.c tests/mockimapd/world.h
mockimapd_LDADD = libbase.a $(EVENT_LIBS) $(GNUTLS_LIBS) $(JANSSON_LIBS) \
	$(BSD_LIBS)
EXTRA_DIST += tests/mockimapd/README.md
