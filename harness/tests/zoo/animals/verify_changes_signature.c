/* Changes the signature. */
#define BEFORE_VERIFY sn[40] ^= 1;
#include "scheme.h"
