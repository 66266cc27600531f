/* Claims secret keys of 2^63 bytes. */
#define CLAIMED_SK (1ULL << 63)
#include "scheme.h"
