/* A program that knows nothing of the wrappers, to be run with memory.c preloaded: prints peak, live, allocations. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *volatile a, *volatile b, *volatile c;

static unsigned long long figure(const char *name)
{
    unsigned long long (*f)(void);

    /* POSIX demands that the pointer of dlsym can be a function's; ISO C has no cast for it */
    *(void **)&f = dlsym(RTLD_DEFAULT, name);
    return f == NULL ? ~0ULL : f();
}

int main(void)
{
    unsigned long long peak, live, allocations;
    void (*reset)(void);

    *(void **)&reset = dlsym(RTLD_DEFAULT, "campaign_memory_reset");
    if (reset == NULL) {
        puts("memory.c is not preloaded");
        return 1;
    }
    reset();
    a = malloc(100);
    a = realloc(a, 250);
    b = strdup("five");
    c = mmap(NULL, 10000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(c, 10000);
    free(a);
    peak = figure("campaign_memory_peak");
    live = figure("campaign_memory_live");
    allocations = figure("campaign_memory_allocations");
    printf("%llu %llu %llu\n", peak, live, allocations);
    return 0;
}
