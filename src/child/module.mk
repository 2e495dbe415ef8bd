noinst_LIBRARIES += libchild.a
libchild_a_SOURCES = \
	src/child/child.h \
	src/child/check.c src/child/clerk.c \
	src/child/hooks.c src/child/hooks.h \
	src/child/hot.c \
	src/child/http.c src/child/http.h \
	src/child/job.c \
	src/child/limits.c src/child/limits.h \
	src/child/metrics.c \
	src/child/once.c \
	src/child/pool.c \
	src/child/runtime.c src/child/runtime.h
