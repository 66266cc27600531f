/* SIGSEGV in a constructor. */
#define AT_LOAD crash();
#include "scheme.h"
