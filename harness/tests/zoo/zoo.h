/*
 * What the animals of the zoo share: headers, and helpers for things that no candidate has any business with.
 * Nothing here is a signature scheme; that is scheme.h, which each animal includes last.
 */
#ifndef ZOO_H
#define ZOO_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Numbers above any descriptor of a worker. */
#define ALL_DESCRIPTORS (1 << 20)

/* Returned by a call of which something forbidden has worked. */
#define ESCAPED (-99)

/*
 * Says on stdout, which becomes evidence, what came of something forbidden; 0 if it was refused. errno is that of
 * the attempt.
 */
static inline int refused(const char *what, int worked)
{
    const int why = errno;

    printf("%s: %s\n", what, worked ? "IT WORKED" : strerror(why));
    fflush(stdout);
    return worked ? ESCAPED : 0;
}

/* Refused to make a file, or to change one that is there. */
static inline int refused_file(const char *what, const char *path, int flags)
{
    const int fd = open(path, flags | O_WRONLY | O_CLOEXEC, 0600);

    return refused(what, fd >= 0);
}

static inline void crash(void)
{
    volatile size_t nowhere = 8;

    *(volatile int *)nowhere = 1;
}

static inline void hang(void)
{
    static volatile unsigned long turns;

    for (;;) {
        turns++;
    }
}

#endif
