noinst_LIBRARIES += libsync.a
libsync_a_SOURCES = 
