/* Gives another signature, which verifies, for the same randomness. */
#define AFTER_NONCE sn[32] ^= (unsigned char)signatures;
#include "scheme.h"
