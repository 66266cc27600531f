/* Claims another length once it has signed. */
#define CLAIMED_SN (SN + (signatures > 0))
#include "scheme.h"
