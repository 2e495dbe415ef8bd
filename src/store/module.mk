noinst_LIBRARIES += libstore.a
libstore_a_SOURCES = src/store/blob.h src/store/message.h src/store/store.h
libstore_a_SOURCES += src/store/tsvector.c src/store/tsvector.h src/store/words.c src/store/words.h src/store/fold_table.h
EXTRA_DIST += scripts/make-fold-table
