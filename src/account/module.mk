noinst_LIBRARIES += libaccount.a
libaccount_a_SOURCES = \
	src/account/briefing.c \
	src/account/db.c src/account/db.h \
	src/account/failure.c \
	src/account/hooks.h \
	src/account/login.c \
	src/account/session.c src/account/session.h
