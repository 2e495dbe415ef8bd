noinst_LIBRARIES += libsync.a
libsync_a_SOURCES = \
	src/sync/backfill.c src/sync/backfill.h \
	src/sync/bootstrap.c \
	src/sync/compare.c src/sync/compare.h \
	src/sync/delta.c src/sync/delta.h \
	src/sync/events.c src/sync/events.h \
	src/sync/folders.c src/sync/folders.h \
	src/sync/identity.c src/sync/identity.h \
	src/sync/ingest.c src/sync/ingest.h \
	src/sync/ingest_commit.c src/sync/ingest_private.h \
	src/sync/look.c src/sync/look.h \
	src/sync/missing.c src/sync/missing.h \
	src/sync/pass.c src/sync/pass.h \
	src/sync/plan.c src/sync/plan.h \
	src/sync/probe.c src/sync/probe.h \
	src/sync/quarantine.c src/sync/quarantine.h \
	src/sync/refusals.c src/sync/refusals.h \
	src/sync/risks.c src/sync/risks.h \
	src/sync/roles.c src/sync/roles.h \
	src/sync/state.h \
	src/sync/survey.c \
	src/sync/sync.c src/sync/sync.h \
	src/sync/watch.c \
	src/sync/windows.c src/sync/windows.h \
	src/sync/wires.c src/sync/wires.h
