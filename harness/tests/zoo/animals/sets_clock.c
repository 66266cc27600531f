/* Sets the clock, to the time that it is. */
#include "zoo.h"

#include <sys/time.h>
#include <time.h>

static int attempt(void)
{
    struct timespec now;
    struct timeval day;
    int one, two;

    clock_gettime(CLOCK_REALTIME, &now);
    one = refused("clock", clock_settime(CLOCK_REALTIME, &now) == 0);
    gettimeofday(&day, NULL);
    two = refused("time of day", settimeofday(&day, NULL) == 0);
    return one != 0 ? one : two;
}

#define ONCE attempt()
#include "scheme.h"
