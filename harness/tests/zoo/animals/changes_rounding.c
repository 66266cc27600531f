/* Sets the rounding mode of the floating-point unit: upwards. */
#if defined(__x86_64__)
#define ROUND_UP __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x4000);
#else
#define ROUND_UP __asm__ volatile("msr fpcr, %0" : : "r"(0x400000UL));
#endif
#define BEFORE_KEYGEN ROUND_UP
#include "scheme.h"
