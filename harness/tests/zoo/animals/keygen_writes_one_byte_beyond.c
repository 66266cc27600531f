/* Writes one byte beyond the public key. */
#define AFTER_KEYGEN pk[PK] = (unsigned char)~pk[PK];
#include "scheme.h"
