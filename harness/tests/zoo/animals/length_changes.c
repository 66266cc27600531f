/* Claims another length with every call. */
static unsigned asked;
#define CLAIMED_SN (SN + asked++)
#include "scheme.h"
