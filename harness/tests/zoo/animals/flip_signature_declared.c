/* Does not look at the last 16 bytes of a signature, as its candidate's table says. */
#define UNUSED_SN 16
#include "scheme.h"
