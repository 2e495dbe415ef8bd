noinst_LIBRARIES += libmaster.a
libmaster_a_SOURCES = \
	src/master/accounts.c src/master/accounts.h \
	src/master/child_end.c src/master/child_end.h \
	src/master/children.c src/master/children.h \
	src/master/clerk.c src/master/clerk.h \
	src/master/commands.c \
	src/master/control.c src/master/control.h \
	src/master/crash_note.c src/master/crash_note.h \
	src/master/dispatch.c src/master/dispatch.h \
	src/master/explain.c \
	src/master/exporter.c src/master/exporter.h \
	src/master/grants.c src/master/grants.h \
	src/master/hosts.c src/master/hosts.h \
	src/master/master.c src/master/master.h \
	src/master/metrics.c src/master/metrics.h \
	src/master/ownership.c src/master/ownership.h \
	src/master/policy.c src/master/policy.h \
	src/master/pool.c src/master/pool.h \
	src/master/relay.c src/master/relay.h \
	src/master/reply.h \
	src/master/role.h \
	src/master/role_jobs.c \
	src/master/role_sync.c \
	src/master/state.h \
	src/master/tiers.c src/master/tiers.h \
	src/master/verdict.c src/master/verdict.h \
	src/master/works.c src/master/works.h
