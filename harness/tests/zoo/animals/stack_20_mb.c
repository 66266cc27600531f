/* Uses 20 MB of stack in each signature: much, and allowed. */
#include "zoo.h"

static __attribute__((noinline)) void use(void)
{
    volatile unsigned char block[20000000];

    for (unsigned long i = 0; i < sizeof block; i += 64) {
        block[i] = (unsigned char)i;
    }
}

#define BEFORE_SIGN use();
#include "scheme.h"
