noinst_LIBRARIES += liblease.a
liblease_a_SOURCES = 
