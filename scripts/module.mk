# The scripts a person runs; check-layers and check-options run in make check.
EXTRA_DIST += scripts/acceptance scripts/check scripts/quickstart scripts/lib scripts/bench \
	scripts/check-layers scripts/check-options scripts/check-field-cases \
	scripts/make-charset-tables scripts/make-date-tables scripts/make-entity-table \
	tests/field-cases.tsv
