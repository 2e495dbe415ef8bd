noinst_LIBRARIES += libredis.a
libredis_a_SOURCES = \
	src/redis/attach.c src/redis/attach.h \
	src/redis/client.c src/redis/client.h \
	src/redis/events.c src/redis/events.h \
	src/redis/loop.h \
	src/redis/redis.c src/redis/redis.h \
	src/redis/scripts.h
# A script is a file; here they are made part of the program.
redis_lua = \
	src/redis/scripts/claim.lua \
	src/redis/scripts/conns_take.lua \
	src/redis/scripts/conns_tell.lua \
	src/redis/scripts/era_confirm.lua \
	src/redis/scripts/era_enter.lua \
	src/redis/scripts/heartbeat.lua \
	src/redis/scripts/hints.lua \
	src/redis/scripts/in_era.lua \
	src/redis/scripts/inherit.lua \
	src/redis/scripts/push.lua \
	src/redis/scripts/release.lua \
	src/redis/scripts/renew.lua \
	src/redis/scripts/turn.lua \
	src/redis/scripts/unlisted.lua
nodist_libredis_a_SOURCES = src/redis/scripts.c
EXTRA_DIST += $(redis_lua) scripts/embed-lua
CLEANFILES += src/redis/scripts.c
src/redis/scripts.c: $(redis_lua) scripts/embed-lua
	$(AM_V_GEN)$(MKDIR_P) src/redis && \
	$(srcdir)/scripts/embed-lua $(srcdir)/src/redis/scripts > $@.new && \
	mv $@.new $@
