# The simulation: thousands of histories of a fleet (see README.md there).
# Its own objects come first: what they define is not taken from the archives.
if HAVE_LUA
check_PROGRAMS += simulate
TESTS += tests/simulation/check
simulate_SOURCES = tests/simulation/simulate.c tests/simulation/world.h \
	tests/simulation/breaks.c tests/simulation/children.c \
	tests/simulation/loop.c tests/simulation/plan.c \
	tests/simulation/redis.c tests/simulation/server.c \
	tests/simulation/server.h tests/simulation/tables.c \
	tests/simulation/watch.c tests/simulation/worker.c
simulate_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests/simulation $(LUA_CFLAGS)
simulate_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=lease_deadline \
	-Wl,--wrap=share_claim -Wl,--wrap=share_shed \
	-Wl,--wrap=policy_tier -Wl,--wrap=policy_budget \
	-Wl,--wrap=takeover_begin -Wl,--wrap=accounts_renew
simulate_LDADD = libmaster.a liblease.a libredis.a libproc.a libipc.a libconf.a \
	libbase.a $(JANSSON_LIBS) $(CONFUSE_LIBS) $(LUA_LIBS) $(BSD_LIBS)
endif
EXTRA_DIST += tests/simulation/README.md tests/simulation/check
