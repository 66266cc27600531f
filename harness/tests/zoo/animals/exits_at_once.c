/* Calls _exit(0). */
#define BEFORE_VERIFY _exit(0);
#include "scheme.h"
