# The two programs.  Order of the libraries: whoever includes comes first.
sbin_PROGRAMS += mailherd
mailherd_SOURCES = src/main.c
mailherd_LDADD = libmaster.a libchild.a libjobs.a libsync.a libaccount.a libmime.a \
	libimap.a libnet.a libblob.a libstore.a libmail.a liblease.a libredis.a libproc.a libipc.a libconf.a \
	libbase.a \
	$(EVENT_LIBS) $(HIREDIS_LIBS) $(PQ_LIBS) $(ETPAN_LIBS) $(GNUTLS_LIBS) \
	$(GMIME_LIBS) $(CONFUSE_LIBS) $(JANSSON_LIBS) $(SODIUM_LIBS) \
	$(ZSTD_LIBS) $(BSD_LIBS) -lm

bin_PROGRAMS += mailherdctl
mailherdctl_SOURCES = src/ctl/main.c
mailherdctl_LDADD = libctl.a libblob.a libstore.a libmail.a liblease.a libredis.a libproc.a libipc.a \
	libconf.a libbase.a \
	$(EVENT_LIBS) $(HIREDIS_LIBS) $(PQ_LIBS) $(GNUTLS_LIBS) \
	$(CONFUSE_LIBS) $(JANSSON_LIBS) $(SODIUM_LIBS) $(ZSTD_LIBS) \
	$(BSD_LIBS) -lm
