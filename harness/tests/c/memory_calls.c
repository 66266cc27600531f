/*
 * Calls of the allocator with a known outcome, for the wrappers of drivers/abi/memory.c. One line a case:
 * name, peak, live, allocations. What they must be is in drivers_abi.rs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "campaign_abi.h"

/* Volatile, so that no call is optimised away. */
static void *volatile a, *volatile b, *volatile c;
static volatile size_t huge = SIZE_MAX / 2;

static void print(const char *name)
{
    printf("%s %llu %llu %llu\n", name, campaign_memory_peak(), campaign_memory_live(), campaign_memory_allocations());
    campaign_memory_reset();
}

static int bad(const char *what)
{
    printf("wrong: %s\n", what);
    return 1;
}

static void blocks(void)
{
    a = malloc(1000);
    b = malloc(20480);
    free(a);
    c = malloc(500);
    free(b);
    free(c);
    print("malloc");
    a = malloc(0);
    free(a);
    free(NULL);
    print("malloc_of_nothing");
    a = calloc(3, 1000);
    free(a);
    print("calloc");
    a = calloc(huge, 3);
    print("calloc_overflow");
    for (int i = 0; i < 5; i++) {
        a = malloc(32);
    }
    print("leak");
}

static void reallocations(void)
{
    a = malloc(100);
    a = realloc(a, 5000);
    a = realloc(a, 50);
    free(a);
    print("realloc");
    a = realloc(NULL, 70);
    a = realloc(a, 0);
    print("realloc_to_nothing");
    a = malloc(100);
    b = realloc(a, huge);
    print("realloc_refused");
    b = reallocarray(a, huge, 4);
    a = reallocarray(a, 10, 20);
    print("reallocarray");
    free(a);
    campaign_memory_reset();
}

static int aligned(void)
{
    void *made = NULL;

    a = aligned_alloc(64, 640);
    b = memalign(256, 96);
    if (posix_memalign(&made, 4096, 1234) != 0) {
        return bad("posix_memalign");
    }
    if ((uintptr_t)a % 64 != 0 || (uintptr_t)b % 256 != 0 || (uintptr_t)made % 4096 != 0) {
        return bad("alignment");
    }
    free(a);
    free(b);
    free(made);
    print("aligned");
    if (posix_memalign(&made, 3, 100) != EINVAL) {
        return bad("posix_memalign accepts 3");
    }
    print("aligned_refused");
    a = strdup("twelve bytes");
    b = strndup("twelve bytes", 6);
    if (strcmp(a, "twelve bytes") != 0 || strcmp(b, "twelve") != 0) {
        return bad("copies");
    }
    free(a);
    free(b);
    print("strings");
    return 0;
}

static int mappings(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map = mmap(NULL, 3000001, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    munmap(map, 3000001);
    print("mmap");
    map = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(map + 2 * page, 3 * page);
    printf("live in pages %llu\n", campaign_memory_live() / page);
    munmap(map, 8 * page);
    printf("live in pages %llu\n", campaign_memory_live() / page);
    campaign_memory_reset();
    map = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    map = mremap(map, 65536, 200000, MREMAP_MAYMOVE);
    if (map == MAP_FAILED) {
        return bad("mremap");
    }
    print("mremap");
    munmap(map, 200000);
    print("mremap_older");
    if (munmap(map + 1, page) == 0 || mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
        return bad("mapping errors");
    }
    print("mmap_refused");
    return 0;
}

/* What lived before the reset is replaced, then freed. */
static void older(void)
{
    a = malloc(1000);
    campaign_memory_reset();
    printf("base %llu\n", campaign_memory_base());
    b = malloc(1000);
    free(a);
    print("older_replaced");
    free(b);
    print("older_freed");
}

static void foreign(void)
{
    char *line = NULL;
    size_t size = 0;
    FILE *f = fopen("/proc/self/status", "r");

    /* made by libc for us: not counted, and free must not stumble over it */
    if (f == NULL || getline(&line, &size, f) < 0) {
        bad("getline");
    } else {
        fclose(f);
    }
    free(line);
    print("foreign");
}

#define MANY 20000u

static void many(void)
{
    static void *kept[MANY];

    for (unsigned i = 0; i < MANY; i++) {
        kept[i] = malloc(i % 97);
    }
    for (unsigned i = 0; i < MANY; i++) {
        free(kept[i * 7919u % MANY]); /* 7919 is prime to 20000: every block once */
    }
    print("many");
}

static void *worker(void *unused)
{
    for (unsigned i = 0; i < 5000; i++) {
        void *volatile p = malloc(16 + i % 64);
        void *volatile q = realloc(p, 300);

        free(q);
    }
    return unused;
}

static int threads(void)
{
    pthread_t t[4];

    for (int i = 0; i < 4; i++) {
        if (pthread_create(&t[i], NULL, worker, NULL) != 0) {
            return bad("pthread_create");
        }
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
    }
    printf("threads %llu %llu\n", campaign_memory_live(), campaign_memory_allocations());
    return 0;
}

int main(void)
{
    campaign_memory_reset();
    blocks();
    campaign_memory_reset();
    reallocations();
    if (aligned() != 0 || mappings() != 0) {
        return 1;
    }
    older();
    foreign();
    many();
    if (threads() != 0) {
        return 1;
    }
    printf("overflow %llu\n", campaign_memory_overflow());
    return 0;
}
