/* SIGSEGV in key generation. */
#define BEFORE_KEYGEN crash();
#include "scheme.h"
