noinst_LIBRARIES += libctl.a
libctl_a_SOURCES = 
