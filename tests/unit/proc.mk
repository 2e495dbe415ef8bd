# Unit tests of src/proc; see tests/unit/module.mk for how to add one.
check_PROGRAMS += test_proc test_vault
TESTS += test_proc test_vault
test_proc_SOURCES = tests/unit/test_proc.c
test_proc_LDADD = libproc.a libipc.a libbase.a $(SODIUM_LIBS) $(UNIT_LIBS)
test_vault_SOURCES = tests/unit/test_vault.c
test_vault_LDADD = libproc.a libipc.a libbase.a $(SODIUM_LIBS) $(UNIT_LIBS)
