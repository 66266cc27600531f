/* Never comes back, and takes no polite signal. */
#include "zoo.h"

#include <signal.h>

static void stay(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    hang();
}

#define BEFORE_SIGN stay();
#include "scheme.h"
