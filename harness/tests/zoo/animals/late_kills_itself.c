/* Sends itself SIGKILL in a timed signature, as if the kernel had run out of memory; known answers pass. */
#include "zoo.h"

#include <signal.h>

#define BEFORE_SIGN if (LATE) kill(getpid(), SIGKILL);
#include "scheme.h"
