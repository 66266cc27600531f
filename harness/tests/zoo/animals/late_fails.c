/* Fails for 8% of the messages of a trial; known answers pass. */
#define BEFORE_SIGN if (LATE && m[0] % 12 == 0) return -6;
#include "scheme.h"
