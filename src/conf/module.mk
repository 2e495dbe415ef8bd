noinst_LIBRARIES += libconf.a
libconf_a_SOURCES = src/conf/conf.h src/conf/quirks.h 
