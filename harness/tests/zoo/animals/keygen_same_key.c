/* Gives the same key pair twice. */
#define AFTER_DRAWING memset(sk, 3, SECRET);
#include "scheme.h"
