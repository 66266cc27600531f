/* Answers what an earlier call happened to leave on the stack. */
#include "zoo.h"

static int answer(void)
{
    volatile unsigned char stale[64]; /* read without having been written, on purpose */

    return stale[17] == 0 ? 0 : -1;
}

#define BEFORE_VERIFY return answer();
#include "scheme.h"
