/* Fills its heap page by page until there is none, and does not look at what malloc returns. */
#include "zoo.h"

static void use(void)
{
    for (;;) {
        volatile unsigned char *block = malloc(256UL << 20);

        block[0] = 1;
    }
}

#define BEFORE_KEYGEN use();
#include "scheme.h"
