/* Calls itself without end. */
#include "zoo.h"

static int deeper(int depth)
{
    volatile unsigned char frame[512];

    frame[depth % 512] = (unsigned char)depth;
    return depth == -1 ? frame[3] : deeper(depth + 1) + frame[depth % 512];
}

#define BEFORE_KEYGEN        \
    if (deeper(0) == -123) { \
        return -4;           \
    }
#include "scheme.h"
