/* Closes the descriptors that a program usually has, and not the one of the events. */
#include "zoo.h"

static int close_low(void)
{
    for (int fd = 3; fd < 256; fd++) {
        close(fd);
    }
    return 0;
}

#define ONCE close_low()
#include "scheme.h"
