/* Doubles itself six times; each process that comes of it stays. */
#include "zoo.h"

static int bomb(void)
{
    const pid_t me = getpid();
    int worked = 0;

    for (int i = 0; i < 6; i++) {
        worked |= fork() >= 0;
    }
    while (getpid() != me) {
        pause();
    }
    return refused("fork", worked);
}

#define ONCE bomb()
#include "scheme.h"
