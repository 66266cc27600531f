/* Takes a longer signature for its beginning. */
#define IS_SIGNATURE_LENGTH(n) ((n) >= SN)
#include "scheme.h"
