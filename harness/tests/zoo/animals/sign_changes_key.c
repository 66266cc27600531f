/* Changes the secret key. */
#define AFTER_SIGN sk[0] ^= 1;
#include "scheme.h"
