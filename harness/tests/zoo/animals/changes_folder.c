/* Changes the working directory. */
#define ONCE refused("folder", chdir("/") == 0)
#include "scheme.h"
