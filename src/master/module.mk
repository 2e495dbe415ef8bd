noinst_LIBRARIES += libmaster.a
libmaster_a_SOURCES = 
