/* Calls exit(0): success, it says. */
#define BEFORE_SIGN exit(0);
#include "scheme.h"
