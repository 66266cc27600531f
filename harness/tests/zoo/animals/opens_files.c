/* Opens a file that it may read, in every process: none is opened any more once the library is loaded. */
#include "zoo.h"

static int attempt(void)
{
    return refused("reading a file", open("/proc/self/status", O_RDONLY | O_CLOEXEC) >= 0);
}

#define ONCE attempt()
#include "scheme.h"
