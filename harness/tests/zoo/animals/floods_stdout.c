/* Writes 100 MB to stdout: with the last message of a KAT, which only the timed library is shown. */
#include "zoo.h"

static void flood(void)
{
    static char block[1000000];

    memset(block, 'z', sizeof block);
    for (int i = 0; i < 100; i++) {
        if (write(1, block, sizeof block) < 0) {
            return;
        }
    }
}

#define BEFORE_SIGN     \
    if (m_len == 128) { \
        flood();        \
    }
#include "scheme.h"
