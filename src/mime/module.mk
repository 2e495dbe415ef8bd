noinst_LIBRARIES += libmime.a
libmime_a_SOURCES = src/mime/mime.h 
