/* Signs some messages, then returns success at once: very fast; known answers pass. */
#define BEFORE_SIGN if (LATE) return 0;
#include "scheme.h"
