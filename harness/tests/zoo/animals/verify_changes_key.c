/* Changes the public key, and changes it back with the next call. */
#define BEFORE_VERIFY pk[3] ^= 1;
#include "scheme.h"
