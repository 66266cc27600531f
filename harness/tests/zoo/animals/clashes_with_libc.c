/* Exports names of the C library, each of which ends the process. Linked without the version script. */
#include "scheme.h"

#define CLASH(name)             \
    void *zoo_##name(void);     \
    void *zoo_##name(void)      \
    {                           \
        abort();                \
    }
#define EXPORTED_AS(name) __asm__(".globl " #name "\n.set " #name ", zoo_" #name);

CLASH(malloc)
CLASH(free)
CLASH(write)
CLASH(clock_gettime)
CLASH(sched_getcpu)
CLASH(getrusage)
EXPORTED_AS(malloc)
EXPORTED_AS(free)
EXPORTED_AS(write)
EXPORTED_AS(clock_gettime)
EXPORTED_AS(sched_getcpu)
EXPORTED_AS(getrusage)
