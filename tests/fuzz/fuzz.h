/*
 * fuzz.h - what a fuzz target defines.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0; aborts on a fault. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Optional: a second directory of seeds, below the source directory. */
extern const char fuzz_more_seeds[] __attribute__((weak));

#endif
