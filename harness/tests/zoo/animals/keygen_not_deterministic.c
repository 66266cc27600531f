/* Gives another key pair for the same randomness. */
#define AFTER_DRAWING sk[0] ^= (unsigned char)keys;
#include "scheme.h"
