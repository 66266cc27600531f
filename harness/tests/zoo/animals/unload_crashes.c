/* SIGSEGV in a destructor. */
#define AT_UNLOAD crash();
#include "scheme.h"
