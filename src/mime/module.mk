noinst_LIBRARIES += libmime.a
libmime_a_SOURCES = \
	src/mime/address.c src/mime/address.h \
	src/mime/alternative.c src/mime/alternative.h \
	src/mime/attachment.c src/mime/attachment.h \
	src/mime/body.c src/mime/body.h \
	src/mime/calendar.c src/mime/calendar.h \
	src/mime/charset.c src/mime/charset.h \
	src/mime/charset_frequent.h src/mime/charset_labels.h \
	src/mime/charset_names.h src/mime/charset_tables.h \
	src/mime/cms.c src/mime/cms.h \
	src/mime/codec.c src/mime/codec.h \
	src/mime/date.c src/mime/date.h src/mime/date_tables.h \
	src/mime/decode.c src/mime/decode.h \
	src/mime/detect.c src/mime/detect.h \
	src/mime/encoded.c src/mime/encoded.h \
	src/mime/entity.c src/mime/entity.h src/mime/entity_table.h \
	src/mime/flowed.c src/mime/flowed.h \
	src/mime/header.c src/mime/header.h \
	src/mime/html.c src/mime/html.h \
	src/mime/iconv.c \
	src/mime/ids.c src/mime/ids.h \
	src/mime/iso2022.c \
	src/mime/leaf.c src/mime/leaf.h \
	src/mime/mime.c src/mime/mime.h \
	src/mime/param.c src/mime/param.h \
	src/mime/reading.c src/mime/reading.h \
	src/mime/report.c src/mime/report.h \
	src/mime/role.c src/mime/role.h \
	src/mime/rtf.c src/mime/rtf.h \
	src/mime/scan.c src/mime/scan.h \
	src/mime/source.c src/mime/source.h \
	src/mime/view.c src/mime/view.h \
	src/mime/subject.c src/mime/subject.h src/mime/subject_prefixes.h \
	src/mime/tnef.c src/mime/tnef.h \
	src/mime/tree.c src/mime/tree.h \
	src/mime/unwrap.c src/mime/unwrap.h \
	src/mime/uuencode.c src/mime/uuencode.h
