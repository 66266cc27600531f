/* Wants 8 GB of heap, writes to all of it if it gets it, and says so if not. */
#include "zoo.h"

static int use(void)
{
    unsigned char *volatile block = malloc(8UL << 30);

    if (block == NULL) {
        return -5;
    }
    memset(block, 1, 8UL << 30);
    free(block);
    return 0;
}

#define ONCE use()
#include "scheme.h"
