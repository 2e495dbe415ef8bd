/*
 * batch.h - what of a batch the other files of src/store see.
 *
 * Private to src/store.
 */
#ifndef STORE_BATCH_H
#define STORE_BATCH_H

#include "store/param.h"
#include "store/store.h"

/* Number of parameters that batch_params adds. */
extern const int batch_n_params;

/* The parameters of ingest() from n_comp on; they point into the batch. */
void batch_params(struct batch *b, const struct uuid *account_id,
    struct params *p);

#endif
