/*
 * The instance that this compilation makes, in the form that the NGCC programme
 * asks of a signature candidate: its name, and the API.
 *
 * The name follows from DOVE_CLASSIC or DOVE_PKC_SKC, and DOVE_LEVEL (params.h).
 */
#ifndef SIG_ALGORITHMINSTANCE_H
#define SIG_ALGORITHMINSTANCE_H

#include "params.h"
#include "sig_api.h"

#define ALGORITHM_INSTANCE "dove_" DOVE_VARIANT "_" DOVE_LEVEL_NAME

#endif
