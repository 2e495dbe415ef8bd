noinst_LIBRARIES += libmail.a
libmail_a_SOURCES = \
	src/mail/account.h src/mail/folder.h src/mail/message.h \
	src/mail/names.c \
	src/mail/tsvector.c src/mail/tsvector.h \
	src/mail/words.c src/mail/words.h src/mail/fold_table.h
EXTRA_DIST += scripts/make-fold-table
