# Unit tests of src/child; see tests/unit/module.mk for how to add one.
check_PROGRAMS += test_http
TESTS += test_http
test_http_SOURCES = tests/unit/test_http.c
test_http_LDADD = libchild.a libbase.a $(UNIT_LIBS)
