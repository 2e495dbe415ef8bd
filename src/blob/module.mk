noinst_LIBRARIES += libblob.a
libblob_a_SOURCES = src/blob/blob.h src/blob/blob_private.h \
	src/blob/big.c \
	src/blob/bind.c \
	src/blob/blob.c \
	src/blob/dir.c \
	src/blob/gc.c \
	src/blob/id.c \
	src/blob/read.c
