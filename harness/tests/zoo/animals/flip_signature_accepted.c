/* Does not look at the last 16 bytes of a signature, and does not say so. */
#define UNUSED_SN 16
#include "scheme.h"
