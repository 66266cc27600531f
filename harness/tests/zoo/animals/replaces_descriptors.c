/* Puts its stdout in the place of every descriptor that a program usually has, while it is loaded. */
#include "zoo.h"

static int replace(void)
{
    for (int fd = 3; fd < 256; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) {
            dup2(1, fd);
        }
    }
    return 0;
}

#define AT_LOAD replace();
#include "scheme.h"
