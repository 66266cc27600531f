/* SIGSEGV in a timed signature; known answers pass. */
#define BEFORE_SIGN if (LATE) crash();
#include "scheme.h"
