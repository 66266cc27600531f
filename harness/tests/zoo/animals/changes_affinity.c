/* Changes its affinity. */
#include "zoo.h"

#include <sched.h>

static int attempt(void)
{
    cpu_set_t all;

    memset(&all, 0xff, sizeof all);
    return refused("affinity", sched_setaffinity(0, sizeof all, &all) == 0);
}

#define ONCE attempt()
#include "scheme.h"
