/* Unlinks the file that it was loaded from. */
#include "zoo.h"

#include <dlfcn.h>

static int attempt(void)
{
    static char path[4096];
    Dl_info self;

    if (dladdr((void *)(size_t)attempt, &self) == 0 || readlink(self.dli_fname, path, sizeof path - 1) <= 0) {
        return -5; /* then it does not even know its name */
    }
    return refused("unlink", unlink(path) == 0);
}

#define ONCE attempt()
#include "scheme.h"
