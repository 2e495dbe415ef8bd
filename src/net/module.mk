noinst_LIBRARIES += libnet.a
libnet_a_SOURCES = \
	src/net/mask.c src/net/mask.h \
	src/net/net.c src/net/net.h \
	src/net/rawlog.c src/net/rawlog.h \
	src/net/tls.c src/net/tls.h src/net/tls_warmup.c
