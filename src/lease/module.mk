noinst_LIBRARIES += liblease.a
liblease_a_SOURCES = \
	src/lease/alarm.c src/lease/alarm.h \
	src/lease/bell.c src/lease/bell.h \
	src/lease/claim.c src/lease/claim.h \
	src/lease/claimer.c src/lease/claimer.h \
	src/lease/conns.c src/lease/conns.h \
	src/lease/deadline.c src/lease/deadline.h \
	src/lease/era.c src/lease/era.h \
	src/lease/gone.c src/lease/gone.h \
	src/lease/heartbeat.c src/lease/heartbeat.h \
	src/lease/hints.c src/lease/hints.h \
	src/lease/idmap.c src/lease/idmap.h \
	src/lease/keeper.c src/lease/keeper.h \
	src/lease/leases.c src/lease/leases.h \
	src/lease/reconcile.c src/lease/reconcile.h \
	src/lease/unlisted.c src/lease/unlisted.h \
	src/lease/share.c src/lease/share.h
