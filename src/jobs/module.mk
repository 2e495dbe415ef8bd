noinst_LIBRARIES += libjobs.a
libjobs_a_SOURCES = 
