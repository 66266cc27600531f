/* Returns a longer signature than it claims. */
#define AFTER_SIGN *sn_len = SN + 1;
#include "scheme.h"
