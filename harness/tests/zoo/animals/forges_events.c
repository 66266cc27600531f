/* Writes made-up progress and a made-up end to every descriptor that it finds. */
#include "zoo.h"

static int forge(void)
{
    static const char lines[] =
        "{\"token\":\"00000000000000000000000000000000\",\"seq\":2,\"event\":\"progress\","
        "\"data\":{\"done\":10,\"planned\":10}}\n"
        "{\"token\":\"00000000000000000000000000000000\",\"seq\":3,\"event\":\"done\"}\n";

    for (int fd = 3; fd < ALL_DESCRIPTORS; fd++) {
        if (write(fd, lines, sizeof lines - 1) < 0) {
            continue;
        }
    }
    _exit(0);
}

#define ONCE forge()
#include "scheme.h"
