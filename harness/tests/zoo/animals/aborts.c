/* Calls abort(). */
#define BEFORE_SIGN abort();
#include "scheme.h"
