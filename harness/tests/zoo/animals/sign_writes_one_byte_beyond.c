/* Writes one byte beyond the signature. */
#define AFTER_SIGN sn[SN] = (unsigned char)~sn[SN];
#include "scheme.h"
