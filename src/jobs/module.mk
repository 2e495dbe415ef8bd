noinst_LIBRARIES += libjobs.a
libjobs_a_SOURCES = \
	src/jobs/bootstrap.c \
	src/jobs/jobs.c src/jobs/jobs.h \
	src/jobs/refresh.c
