/* Looks at the first half of a message only. */
#define VERIFIED_BYTES(n) ((n) / 2)
#include "scheme.h"
