# Unit tests of src/mime; see tests/unit/module.mk for how to add one.
check_PROGRAMS += test_tsvector
TESTS += test_tsvector
test_tsvector_SOURCES = tests/unit/test_tsvector.c src/mail/tsvector.c \
	src/mail/words.c
test_tsvector_LDADD = libbase.a $(UNIT_LIBS)

check_PROGRAMS += test_mime
TESTS += test_mime
test_mime_SOURCES = tests/unit/test_mime.c
test_mime_LDADD = libmime.a libbase.a $(GMIME_LIBS) $(UNIT_LIBS)

check_PROGRAMS += test_mime_text
TESTS += test_mime_text
test_mime_text_SOURCES = tests/unit/test_mime_text.c
test_mime_text_LDADD = libmime.a libbase.a $(GMIME_LIBS) $(UNIT_LIBS)
EXTRA_DIST += tests/mime-cases

check_PROGRAMS += test_mime_parts
TESTS += test_mime_parts
test_mime_parts_SOURCES = tests/unit/test_mime_parts.c
test_mime_parts_LDADD = libmime.a libbase.a $(GMIME_LIBS) $(UNIT_LIBS)
