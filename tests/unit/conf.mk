# Unit tests of src/conf; see tests/unit/module.mk for how to add one.
check_PROGRAMS += test_conf
TESTS += test_conf
test_conf_SOURCES = tests/unit/test_conf.c
test_conf_LDADD = libconf.a libbase.a $(CONFUSE_LIBS) $(UNIT_LIBS)

# Prints the option table, for scripts/check-options.
check_PROGRAMS += print_options
print_options_SOURCES = tests/unit/print_options.c
print_options_LDADD = libconf.a libbase.a $(CONFUSE_LIBS) $(BSD_LIBS)
