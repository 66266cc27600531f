/* Does not come back from a timed signature; known answers pass. */
#define BEFORE_SIGN if (LATE) hang();
#include "scheme.h"
