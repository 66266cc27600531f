/* Writes bytes that are no event, and no line either, to every descriptor that it finds. */
#include "zoo.h"

static int garble(void)
{
    for (int fd = 3; fd < ALL_DESCRIPTORS; fd++) {
        if (write(fd, "\xff{\0", 3) < 0) {
            continue;
        }
    }
    return 0;
}

#define ONCE garble()
#include "scheme.h"
