/* Writes one byte before the signature. */
#define AFTER_SIGN sn[-1] = (unsigned char)~sn[-1];
#include "scheme.h"
