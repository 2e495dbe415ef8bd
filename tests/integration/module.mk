# Integration tests: pytest against private PostgreSQL, Redis, Dovecot, Cyrus
# and Courier.
#
#	MAILHERD_BUILD=BUILD-DIRECTORY pytest -n 2 tests/integration
#
# is what scripts/check does.  They are not part of "make check": a bare build
# host has no mail server.
EXTRA_DIST += tests/integration tests/corpus tests/soak
