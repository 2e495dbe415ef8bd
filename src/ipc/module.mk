noinst_LIBRARIES += libipc.a
libipc_a_SOURCES = src/ipc/channel.c src/ipc/channel.h src/ipc/checks.def \
	src/ipc/messages.def src/ipc/messages.h
