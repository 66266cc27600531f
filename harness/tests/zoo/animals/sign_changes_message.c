/* Changes the message. */
#define AFTER_SIGN m[0] ^= 1;
#include "scheme.h"
