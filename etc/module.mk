# The schema, one numbered file per version.
schemadir = $(pkgdatadir)/schema
dist_schema_DATA = \
	etc/schema/001_base.sql \
	etc/schema/002_write.sql \
	etc/schema/003_work.sql \
	etc/schema/004_account.sql \
	etc/schema/005_places.sql

# Samples of the settings; never over an operator's own.
dist_pkgdata_DATA = etc/mailherd.conf etc/quirks.conf
install-data-local: install-settings
install-settings:
	$(MKDIR_P) "$(DESTDIR)$(sysconfdir)/mailherd"
	for f in mailherd.conf quirks.conf; do \
		test -e "$(DESTDIR)$(sysconfdir)/mailherd/$$f" || \
		$(INSTALL_DATA) "$(top_srcdir)/etc/$$f" \
		    "$(DESTDIR)$(sysconfdir)/mailherd/$$f" || exit 1; \
	done
# What nobody has changed goes, too.
uninstall-local: uninstall-settings
uninstall-settings:
	for f in mailherd.conf quirks.conf; do \
		! cmp -s "$(top_srcdir)/etc/$$f" \
		    "$(DESTDIR)$(sysconfdir)/mailherd/$$f" || \
		rm -f "$(DESTDIR)$(sysconfdir)/mailherd/$$f" || exit 1; \
	done
.PHONY: install-settings uninstall-settings

# systemd units, with the directory of the program filled in.
UNITS = etc/systemd/mailherd-sync@.service etc/systemd/mailherd-jobs@.service
systemdsystemunit_DATA = $(UNITS)
EXTRA_DIST += etc/systemd/mailherd-sync@.service.in \
	etc/systemd/mailherd-jobs@.service.in
CLEANFILES += $(UNITS)
$(UNITS): %: %.in
	$(AM_V_GEN)$(MKDIR_P) etc/systemd && \
	sed 's|@sbindir[@]|$(sbindir)|g' "$(top_srcdir)/$@.in" > $@.tmp && \
	mv $@.tmp $@
