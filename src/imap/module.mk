noinst_LIBRARIES += libimap.a
libimap_a_SOURCES = src/imap/imap.h \
	src/imap/session.h src/imap/session.c \
	src/imap/open.c src/imap/login.c \
	src/imap/command.h src/imap/command.c \
	src/imap/list.c src/imap/status.h src/imap/status.c \
	src/imap/select.c \
	src/imap/scan.c src/imap/fetch.c src/imap/idle.c \
	src/imap/changes.h src/imap/changes.c \
	src/imap/keywords.h src/imap/keywords.c \
	src/imap/names.h src/imap/names.c \
	src/imap/words.h src/imap/words.c \
	src/imap/fallback.h src/imap/fallback.c \
	src/imap/stream.h src/imap/stream.c src/imap/stream_private.h \
	src/imap/input.c \
	src/imap/sanitize.h src/imap/sanitize.c src/imap/sanitize_private.h \
	src/imap/sanitize_list.c src/imap/sanitize_fetch.c
