/* Writes one byte beyond the signature in one timed call; known answers pass. */
#define AFTER_SIGN if (signatures == 30) sn[SN] = (unsigned char)~sn[SN];
#include "scheme.h"
