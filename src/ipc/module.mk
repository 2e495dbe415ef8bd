noinst_LIBRARIES += libipc.a
libipc_a_SOURCES = src/ipc/channel.h src/ipc/messages.def src/ipc/messages.h 
