# Fuzz targets: every parser of foreign bytes.
#
# A target is one file, tests/fuzz/fuzz_NAME.c, with LLVMFuzzerTestOneInput()
# (declared in tests/fuzz/fuzz.h), a directory tests/fuzz/seeds/NAME with at
# least one file, and three lines here:
#
#	FUZZ_TARGETS += fuzz_NAME
#	fuzz_NAME_SOURCES = tests/fuzz/fuzz_NAME.c
#	fuzz_NAME_LDADD = libNAME.a libbase.a $(FUZZ_LIBS)
#
# "make check" replays the seeds.  To search for new faults:
#
#	./configure CC=clang --enable-fuzz --enable-sanitizers
#	make fuzz_NAME && mkdir found
#	./fuzz_NAME -max_total_time=300 found tests/fuzz/seeds/NAME
#
# An input that failed goes into the seeds with the commit of its cure.
FUZZ_TARGETS =
EXTRA_DIST += tests/fuzz/seeds
check_PROGRAMS += $(FUZZ_TARGETS)
if FUZZ
AM_CFLAGS += -fsanitize=fuzzer-no-link -DSOURCE_CHUNK='((size_t)2048)'
AM_LDFLAGS += -fsanitize=fuzzer-no-link
FUZZ_LIBS = $(FUZZ_ENGINE) $(BSD_LIBS) -lpthread -lm
else
TESTS += $(FUZZ_TARGETS)
check_LIBRARIES = libreplay.a
libreplay_a_SOURCES = tests/fuzz/replay.c tests/fuzz/fuzz.h
FUZZ_LIBS = libreplay.a $(BSD_LIBS) -lpthread -lm
endif

FUZZ_TARGETS += fuzz_tsvector
fuzz_tsvector_SOURCES = tests/fuzz/fuzz_tsvector.c
fuzz_tsvector_LDADD = libmail.a libbase.a $(FUZZ_LIBS)

FUZZ_TARGETS += fuzz_wrapped
fuzz_wrapped_SOURCES = tests/fuzz/fuzz_wrapped.c
fuzz_wrapped_LDADD = libmime.a libbase.a $(GMIME_LIBS) $(FUZZ_LIBS)

FUZZ_TARGETS += fuzz_mime
fuzz_mime_SOURCES = tests/fuzz/fuzz_mime.c
fuzz_mime_LDADD = libmime.a libbase.a $(GMIME_LIBS) $(FUZZ_LIBS)

FUZZ_TARGETS += fuzz_charset
fuzz_charset_SOURCES = tests/fuzz/fuzz_charset.c
fuzz_charset_LDADD = libmime.a libbase.a $(GMIME_LIBS) $(FUZZ_LIBS)

FUZZ_TARGETS += fuzz_frame
fuzz_frame_SOURCES = tests/fuzz/fuzz_frame.c
fuzz_frame_LDADD = libipc.a libbase.a $(FUZZ_LIBS)

FUZZ_TARGETS += fuzz_conf
fuzz_conf_SOURCES = tests/fuzz/fuzz_conf.c
fuzz_conf_LDADD = libconf.a libbase.a $(CONFUSE_LIBS) $(FUZZ_LIBS)

FUZZ_TARGETS += fuzz_input
fuzz_input_SOURCES = tests/fuzz/fuzz_input.c
fuzz_input_LDADD = $(FUZZ_IMAP_LIBS)
FUZZ_TARGETS += fuzz_fallback
fuzz_fallback_SOURCES = tests/fuzz/fuzz_fallback.c
fuzz_fallback_LDADD = $(FUZZ_IMAP_LIBS)
FUZZ_TARGETS += fuzz_response
fuzz_response_SOURCES = tests/fuzz/fuzz_response.c
fuzz_response_LDADD = $(FUZZ_IMAP_LIBS)
FUZZ_IMAP_LIBS = libimap.a libnet.a libconf.a libbase.a $(ETPAN_LIBS) \
	$(GNUTLS_LIBS) $(CONFUSE_LIBS) $(FUZZ_LIBS)

FUZZ_TARGETS += fuzz_control
fuzz_control_SOURCES = tests/fuzz/fuzz_control.c
fuzz_control_LDADD = libmaster.a liblease.a libredis.a libproc.a libipc.a libconf.a \
	libbase.a $(EVENT_LIBS) $(HIREDIS_LIBS) $(JANSSON_LIBS) \
	$(CONFUSE_LIBS) $(SODIUM_LIBS) $(FUZZ_LIBS)

FUZZ_TARGETS += fuzz_http
fuzz_http_SOURCES = tests/fuzz/fuzz_http.c
fuzz_http_LDADD = libchild.a libbase.a $(FUZZ_LIBS)
