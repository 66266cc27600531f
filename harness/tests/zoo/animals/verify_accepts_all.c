/* Accepts every signature. */
#define BEFORE_VERIFY return 0;
#include "scheme.h"
