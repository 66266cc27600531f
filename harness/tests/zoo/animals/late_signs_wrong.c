/* Gives signatures that do not verify, from some call on; known answers pass. */
#define AFTER_SIGN if (LATE) sn[5] ^= 1;
#include "scheme.h"
