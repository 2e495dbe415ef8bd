# Unit tests of src/ipc; see tests/unit/module.mk for how to add one.
check_PROGRAMS += test_channel
TESTS += test_channel
test_channel_SOURCES = tests/unit/test_channel.c
test_channel_LDADD = libipc.a libbase.a $(UNIT_LIBS)
