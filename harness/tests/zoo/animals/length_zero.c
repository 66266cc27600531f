/* Claims public keys of 0 bytes. */
#define CLAIMED_PK 0
#include "scheme.h"
