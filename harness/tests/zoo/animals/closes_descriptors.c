/* Closes all descriptors. */
#include "zoo.h"

static int close_all(void)
{
    for (int fd = 0; fd < ALL_DESCRIPTORS; fd++) {
        close(fd);
    }
    return 0;
}

#define ONCE close_all()
#include "scheme.h"
