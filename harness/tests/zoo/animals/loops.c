/* Never comes back. */
#define BEFORE_SIGN hang();
#include "scheme.h"
