noinst_LIBRARIES += libchild.a
libchild_a_SOURCES = src/child/child.h src/child/runtime.h
