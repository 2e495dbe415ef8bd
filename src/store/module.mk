noinst_LIBRARIES += libstore.a
libstore_a_SOURCES = src/store/store.h \
	src/store/account.c \
	src/store/apply.c \
	src/store/batch.c src/store/batch.h \
	src/store/commit.c \
	src/store/folder.c \
	src/store/job.c \
	src/store/names.c \
	src/store/param.c src/store/param.h \
	src/store/risk.c \
	src/store/schema.c \
	src/store/segment.c \
	src/store/connect.c src/store/session.c src/store/session.h \
	src/store/table.c \
	src/store/thread.c src/store/thread.h \
	src/store/upkeep.c
