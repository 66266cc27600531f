/* Does not look at the last 4 of 68 bytes of a public key: 94% of its bits count, 90% must. */
#define UNUSED_PK 4
#include "scheme.h"
