noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
	src/base/arena.c src/base/arena.h \
	src/base/backoff.c src/base/backoff.h \
	src/base/banned.h \
	src/base/buf.c src/base/buf.h \
	src/base/clock.c src/base/clock.h \
	src/base/err.c src/base/err.h \
	src/base/heap.c src/base/heap.h \
	src/base/log.c src/base/log.h \
	src/base/sink.c src/base/sink.h \
	src/base/text.c src/base/text.h \
	src/base/uuid.c src/base/uuid.h \
	src/base/xmem.c src/base/xmem.h
