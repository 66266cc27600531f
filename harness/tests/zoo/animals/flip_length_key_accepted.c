/* Takes a longer public key for its beginning. */
#define IS_KEY_LENGTH(n) ((n) >= PK)
#include "scheme.h"
