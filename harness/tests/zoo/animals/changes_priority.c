/* Changes its priority and its scheduling policy. */
#include "zoo.h"

#include <sched.h>
#include <sys/resource.h>

static int attempt(void)
{
    const struct sched_param none = {0};
    const int one = refused("priority", setpriority(PRIO_PROCESS, 0, 5) == 0);
    const int two = refused("policy", sched_setscheduler(0, SCHED_BATCH, &none) == 0);

    return one != 0 ? one : two;
}

#define ONCE attempt()
#include "scheme.h"
