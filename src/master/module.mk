noinst_LIBRARIES += libmaster.a
libmaster_a_SOURCES = \
	src/master/accounts.c src/master/accounts.h \
	src/master/budget_gate.c src/master/budget_gate.h \
	src/master/budgets.c src/master/budgets.h \
	src/master/child_channel.c src/master/child_channel.h \
	src/master/child_end.c src/master/child_end.h \
	src/master/child_life.c src/master/child_life.h \
	src/master/children.c src/master/children.h \
	src/master/clerk.c src/master/clerk.h \
	src/master/commands.c \
	src/master/control.c src/master/control.h \
	src/master/crash_note.c src/master/crash_note.h \
	src/master/dispatch.c src/master/dispatch.h \
	src/master/dump.c src/master/dump.h \
	src/master/event_hub.c src/master/event_hub.h \
	src/master/explain.c \
	src/master/exporter.c src/master/exporter.h \
	src/master/health.c src/master/health.h \
	src/master/hosts.c src/master/hosts.h \
	src/master/job_dispatch.c src/master/job_dispatch.h \
	src/master/master.c src/master/master.h \
	src/master/messages.c src/master/messages.h \
	src/master/metrics.c src/master/metrics.h \
	src/master/orders.c src/master/orders.h \
	src/master/ownership.c src/master/ownership.h \
	src/master/pass_result.c src/master/pass_result.h \
	src/master/policy.c src/master/policy.h \
	src/master/pool.c src/master/pool.h \
	src/master/release.c src/master/release.h \
	src/master/reply.h \
	src/master/role.h \
	src/master/role_jobs.c \
	src/master/role_sync.c \
	src/master/state.h \
	src/master/takeover.c src/master/takeover.h \
	src/master/tiers.c src/master/tiers.h
