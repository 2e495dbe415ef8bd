# The schema, one numbered file per version.
schemadir = $(pkgdatadir)/schema
dist_schema_DATA = \
	etc/schema/001_base.sql \
	etc/schema/002_write.sql \
	etc/schema/003_work.sql
