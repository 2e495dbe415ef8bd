noinst_LIBRARIES += libmaster.a
libmaster_a_SOURCES = \
	src/master/grants.c src/master/grants.h \
	src/master/policy.c src/master/policy.h
