/*
 * Erasure and allocation; see ct.h. Every heap block is erased before it is
 * freed, public ones too: one rule is easier to keep than a list of exceptions.
 */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

void dove_wipe(void *p, size_t n)
{
    /* A call through a volatile pointer cannot be proved to be a dead store. */
    static void *(*const volatile set)(void *, int, size_t) = memset;

    set(p, 0, n);
}

void *dove_alloc(size_t n)
{
    return calloc(1, n);
}

void dove_free(void *p, size_t n)
{
    if (p != NULL)
        dove_wipe(p, n);
    free(p);
}
