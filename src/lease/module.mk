noinst_LIBRARIES += liblease.a
liblease_a_SOURCES = \
	src/lease/client.c src/lease/client.h \
	src/lease/events.c src/lease/events.h \
	src/lease/idmap.c src/lease/idmap.h \
	src/lease/share.c src/lease/share.h
