/* Does nothing wrong. */
#include "scheme.h"
