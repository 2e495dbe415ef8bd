# Integration tests: pytest against private PostgreSQL, Redis, Dovecot, Cyrus
# and Courier.
#
#	MAILHERD_BUILD=BUILD-DIRECTORY pytest -n 2 tests/integration
#
# is what scripts/check does.  They are not part of "make check": a bare build
# host has no mail server.
EXTRA_DIST += tests/integration tests/corpus tests/soak

# Loaded into every master they start: ends one that could block.
check_DATA = noblock.so
noblock.so: tests/integration/noblock.c
	$(AM_V_GEN)$(CC) -std=gnu11 $(WARN_CFLAGS) -Wno-missing-prototypes \
	    -U_FORTIFY_SOURCE -g -O1 \
	    -shared -fPIC -o $@ $(top_srcdir)/tests/integration/noblock.c -ldl
CLEANFILES += noblock.so
