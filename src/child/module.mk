noinst_LIBRARIES += libchild.a
libchild_a_SOURCES = src/child/runtime.h 
