noinst_LIBRARIES += libproc.a
libproc_a_SOURCES = src/proc/confine.c src/proc/confine.h \
	src/proc/kinds.c src/proc/kinds.h \
	src/proc/privileges.c src/proc/slots.c src/proc/slots.h \
	src/proc/spawn.c src/proc/spawn.h src/proc/title.c \
	src/proc/vault.c src/proc/vault.h
