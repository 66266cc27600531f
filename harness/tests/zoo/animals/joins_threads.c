/* Leaves work to a thread in every call, which has ended when the call returns. */
#include "zoo.h"

#include <pthread.h>

static void *work(void *argument)
{
    static volatile unsigned turns;

    for (turns = 0; turns < 10000; turns++) {
    }
    return argument;
}

static int on_another_thread(void)
{
    pthread_t thread;

    return pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0;
}

#define BEFORE_KEYGEN             \
    if (on_another_thread()) {    \
        return -5;                \
    }
#define BEFORE_SIGN BEFORE_KEYGEN
#define BEFORE_VERIFY BEFORE_KEYGEN
#include "scheme.h"
