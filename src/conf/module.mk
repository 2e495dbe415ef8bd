noinst_LIBRARIES += libconf.a
libconf_a_SOURCES = src/conf/conf.c src/conf/conf.h src/conf/options.c \
	src/conf/options.h src/conf/quirks.c src/conf/quirks.h \
	src/conf/reload.c \
	src/conf/retry.c src/conf/retry.h src/conf/source.c src/conf/source.h
