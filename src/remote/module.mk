noinst_LIBRARIES += libremote.a
libremote_a_SOURCES = src/remote/remote.h \
	src/remote/session.h src/remote/session.c \
	src/remote/open.c src/remote/login.c \
	src/remote/command.h src/remote/command.c \
	src/remote/list.c src/remote/status.h src/remote/status.c \
	src/remote/select.c \
	src/remote/scan.c src/remote/fetch.c src/remote/idle.c \
	src/remote/changes.h src/remote/changes.c \
	src/remote/keywords.h src/remote/keywords.c \
	src/remote/mask.h src/remote/mask.c \
	src/remote/names.h src/remote/names.c \
	src/remote/words.h src/remote/words.c \
	src/remote/catchall.h src/remote/catchall.c \
	src/remote/wire.h src/remote/wire.c src/remote/wire_private.h \
	src/remote/intake.c \
	src/remote/mend.h src/remote/mend.c src/remote/mend_reply.h \
	src/remote/mend_list.c src/remote/mend_fetch.c \
	src/remote/tls.h src/remote/tls.c src/remote/rehearsal.c \
	src/remote/net.h src/remote/net.c \
	src/remote/rawlog.h src/remote/rawlog.c
