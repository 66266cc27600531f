/* Leaves two threads running. */
#include "zoo.h"

#include <pthread.h>

static void *idle(void *argument)
{
    for (;;) {
        sleep(1);
    }
    return argument;
}

static int start(void)
{
    pthread_t thread;

    for (int i = 0; i < 2; i++) {
        if (pthread_create(&thread, NULL, idle, NULL) != 0) {
            return -5;
        }
    }
    return 0;
}

#define ONCE start()
#include "scheme.h"
