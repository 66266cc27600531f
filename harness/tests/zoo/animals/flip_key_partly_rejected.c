/* Does not look at the last 16 of 80 bytes of a public key: 80% of its bits count, 90% must. */
#define UNUSED_PK 16
#include "scheme.h"
