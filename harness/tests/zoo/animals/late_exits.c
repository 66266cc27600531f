/* Calls exit(0) in a timed signature; known answers pass. */
#define BEFORE_SIGN if (LATE) exit(0);
#include "scheme.h"
