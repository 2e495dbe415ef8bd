noinst_LIBRARIES += libproc.a
libproc_a_SOURCES = src/proc/kinds.h src/proc/slots.h src/proc/spawn.h src/proc/vault.h 
