noinst_LIBRARIES += libstore.a
libstore_a_SOURCES = src/store/blob.h src/store/message.h src/store/store.h 
