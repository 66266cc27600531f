/*
 * The allocator of a memory library. Linked with -Wl,--wrap=F for every __wrap_F below, each allocator call of the
 * candidate arrives here, is passed on unchanged, and is entered with the size that was asked for. The worker
 * reads the figures (campaign_abi.h).
 *
 * Sizes live in a side table keyed by address, so that blocks keep the alignment and the layout that the real
 * allocator gives, and a block from elsewhere (made by libc itself, say by getline) can be freed: it is passed on
 * and not counted. Mappings are kept as ranges, since munmap and mremap may take parts of them. The table's own
 * memory comes from the real mmap and is not counted.
 *
 * What it does not do: it does not see what libc allocates on its own behalf (stdio buffers), and realloc counts
 * as the change of size, though the real one may hold both blocks while it copies.
 *
 * Compiled with -DCAMPAIGN_INTERPOSE it defines malloc and the others themselves: an object to preload for a
 * library that comes without sources. It then counts the whole process, so the figures are those between two
 * calls of the worker that allocates nothing in between.
 */
#define _GNU_SOURCE /* mremap, MAP_ANONYMOUS, MREMAP_FIXED */

#include "campaign_abi.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef CAMPAIGN_INTERPOSE
#include <sys/syscall.h>
#define WRAP(f) f
#define REAL(f) real_##f
#else
#define WRAP(f) __wrap_##f
#define REAL(f) __real_##f
#endif

/* ---- the real functions ---- */

#ifdef CAMPAIGN_INTERPOSE

/* glibc's own names of the allocator: reachable without dlsym, which allocates. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

static void *real_malloc(size_t size)
{
    return __libc_malloc(size);
}

static void *real_calloc(size_t n, size_t size)
{
    return __libc_calloc(n, size);
}

static void *real_realloc(void *block, size_t size)
{
    return __libc_realloc(block, size);
}

static void *real_memalign(size_t alignment, size_t size)
{
    return __libc_memalign(alignment, size);
}

static void *real_aligned_alloc(size_t alignment, size_t size)
{
    return __libc_memalign(alignment, size);
}

static int real_posix_memalign(void **block, size_t alignment, size_t size)
{
    void *made;

    if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) {
        return EINVAL;
    }
    made = __libc_memalign(alignment, size);
    if (made == NULL) {
        return ENOMEM;
    }
    *block = made;
    return 0;
}

static void real_free(void *block)
{
    __libc_free(block);
}

static void *real_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

static int real_munmap(void *address, size_t length)
{
    return (int)syscall(SYS_munmap, address, length);
}

static void *real_mremap(void *old, size_t old_length, size_t length, int flags, void *address)
{
    return (void *)syscall(SYS_mremap, old, old_length, length, flags, address);
}

#else

extern void *__real_malloc(size_t size);
extern void *__real_calloc(size_t n, size_t size);
extern void *__real_realloc(void *block, size_t size);
extern void *__real_memalign(size_t alignment, size_t size);
extern void *__real_aligned_alloc(size_t alignment, size_t size);
extern int __real_posix_memalign(void **block, size_t alignment, size_t size);
extern void __real_free(void *block);
extern void *__real_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
extern int __real_munmap(void *address, size_t length);
extern void *__real_mremap(void *old, size_t old_length, size_t length, int flags, ...);

#endif

/* ---- counters, under one lock ---- */

static char lock_word;

static void lock(void)
{
    while (__atomic_test_and_set(&lock_word, __ATOMIC_ACQUIRE)) {
        /* held for some tens of instructions only */
    }
}

static void unlock(void)
{
    __atomic_clear(&lock_word, __ATOMIC_RELEASE);
}

/* live and peak count from the reset; live goes below 0 when older blocks are freed. */
static long long live, peak, base;
static unsigned long long allocations, overflow;

static void grow(size_t bytes)
{
    live += (long long)bytes; /* an address space is smaller than 2^63 */
    if (live > peak) {
        peak = live;
    }
}

static void shrink(size_t bytes)
{
    live -= (long long)bytes;
}

/* ---- blocks: open addressing with linear probing; address 0 marks a free entry ---- */

typedef struct {
    uintptr_t address;
    size_t size;
} block;

#define FIRST_CAPACITY 4096u

static block *blocks;
static size_t capacity; /* 0 or a power of two */
static size_t held;

static size_t home_of(uintptr_t address, size_t entries)
{
    /* blocks are aligned to 16: the low bits say nothing; the multiplier is 2^64 divided by the golden ratio */
    return (size_t)(((uint64_t)address >> 4) * 0x9E3779B97F4A7C15ULL >> 20) & (entries - 1);
}

static void place(block *table, size_t entries, block b)
{
    size_t i = home_of(b.address, entries);

    while (table[i].address != 0) {
        i = (i + 1) & (entries - 1);
    }
    table[i] = b;
}

/* Doubles the table, so that it stays at most half full. Returns 0 when no memory is left for it. */
static int make_room(void)
{
    const size_t entries = capacity == 0 ? FIRST_CAPACITY : 2 * capacity;
    block *table = REAL(mmap)(NULL, entries * sizeof *table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (table == MAP_FAILED) {
        return 0;
    }
    for (size_t i = 0; i < capacity; i++) {
        if (blocks[i].address != 0) {
            place(table, entries, blocks[i]);
        }
    }
    if (blocks != NULL) {
        (void)REAL(munmap)(blocks, capacity * sizeof *blocks);
    }
    blocks = table;
    capacity = entries;
    return 1;
}

/* Takes the block out and stores its size. Returns 0 for one that is not known. */
static int take_block(void *address, size_t *size)
{
    size_t hole, i;

    if (held == 0 || address == NULL) {
        return 0;
    }
    hole = home_of((uintptr_t)address, capacity);
    while (blocks[hole].address != (uintptr_t)address) {
        if (blocks[hole].address == 0) {
            return 0;
        }
        hole = (hole + 1) & (capacity - 1);
    }
    *size = blocks[hole].size;
    held--;
    /* close the gap: move back every later entry of the run that may stand at the hole */
    for (i = (hole + 1) & (capacity - 1); blocks[i].address != 0; i = (i + 1) & (capacity - 1)) {
        const size_t home = home_of(blocks[i].address, capacity);

        if (((i - home) & (capacity - 1)) >= ((i - hole) & (capacity - 1))) {
            blocks[hole] = blocks[i];
            hole = i;
        }
    }
    blocks[hole].address = 0;
    shrink(*size);
    return 1;
}

static void add_block(void *address, size_t size)
{
    const int saved = errno; /* a successful allocation leaves errno alone */
    const block b = {(uintptr_t)address, size};
    size_t stale;

    (void)take_block(address, &stale); /* left when libc itself freed a block of the candidate */
    if (2 * (held + 1) > capacity && !make_room()) {
        overflow++;
    } else {
        place(blocks, capacity, b);
        held++;
        grow(size);
    }
    errno = saved;
}

/* Enters a block that the real allocator just made. */
static void *made(void *address, size_t size)
{
    if (address != NULL) {
        lock();
        add_block(address, size);
        allocations++;
        unlock();
    }
    return address;
}

void *WRAP(malloc)(size_t size);
void *WRAP(calloc)(size_t n, size_t size);
void *WRAP(realloc)(void *old, size_t size);
void *WRAP(reallocarray)(void *old, size_t n, size_t size);
void *WRAP(memalign)(size_t alignment, size_t size);
void *WRAP(aligned_alloc)(size_t alignment, size_t size);
int WRAP(posix_memalign)(void **out, size_t alignment, size_t size);
void WRAP(free)(void *old);
char *WRAP(strdup)(const char *text);
char *WRAP(strndup)(const char *text, size_t most);

void *WRAP(malloc)(size_t size)
{
    return made(REAL(malloc)(size), size);
}

void *WRAP(calloc)(size_t n, size_t size)
{
    /* when the product overflows the real calloc returns NULL and nothing is entered */
    return made(REAL(calloc)(n, size), n * size);
}

void *WRAP(memalign)(size_t alignment, size_t size)
{
    return made(REAL(memalign)(alignment, size), size);
}

void *WRAP(aligned_alloc)(size_t alignment, size_t size)
{
    return made(REAL(aligned_alloc)(alignment, size), size);
}

int WRAP(posix_memalign)(void **out, size_t alignment, size_t size)
{
    const int code = REAL(posix_memalign)(out, alignment, size);

    if (code == 0) {
        made(*out, size);
    }
    return code;
}

/* The entry goes first: once the block is free another thread may be given the same address. */
void WRAP(free)(void *old)
{
    size_t size;

    lock();
    (void)take_block(old, &size);
    unlock();
    REAL(free)(old);
}

void *WRAP(realloc)(void *old, size_t size)
{
    size_t old_size = 0;
    int known;
    void *moved;

    lock();
    known = take_block(old, &old_size);
    unlock();
    moved = REAL(realloc)(old, size);
    lock();
    if (moved != NULL) {
        add_block(moved, size);
        allocations++;
    } else if (known && size != 0) { /* refused: the old block is still there (with size 0 glibc frees it) */
        add_block(old, old_size);
    }
    unlock();
    return moved;
}

void *WRAP(reallocarray)(void *old, size_t n, size_t size)
{
    if (size != 0 && n > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    return WRAP(realloc)(old, n * size);
}

char *WRAP(strdup)(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = WRAP(malloc)(size);

    return copy == NULL ? NULL : memcpy(copy, text, size);
}

char *WRAP(strndup)(const char *text, size_t most)
{
    const char *end = memchr(text, 0, most);
    const size_t length = end == NULL ? most : (size_t)(end - text);
    char *copy = WRAP(malloc)(length + 1);

    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = 0;
    }
    return copy;
}

/* ---- mappings: ranges in bytes as requested, since any part of one can be unmapped ---- */

typedef struct {
    uintptr_t start;
    size_t size; /* 0 marks a free entry */
} range;

#define RANGES 256u

static range ranges[RANGES];

static void add_range(uintptr_t start, size_t size)
{
    for (unsigned i = 0; size != 0 && i < RANGES; i++) {
        if (ranges[i].size == 0) {
            ranges[i].start = start;
            ranges[i].size = size;
            grow(size);
            return;
        }
    }
    overflow += size != 0;
}

/* Takes out whatever is mapped in the pages of [start, start + size): keeps the parts before and behind. */
static void take_range(uintptr_t start, size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t end = start + ((size + page - 1) & ~(page - 1));

    for (unsigned i = 0; i < RANGES; i++) {
        const uintptr_t from = ranges[i].start, to = from + ranges[i].size;

        if (ranges[i].size == 0 || to <= start || end <= from) {
            continue;
        }
        shrink(ranges[i].size);
        ranges[i].size = 0;
        if (from < start) {
            add_range(from, start - from);
        }
        if (end < to) {
            add_range(end, to - end);
        }
    }
}

void *WRAP(mmap)(void *address, size_t length, int protection, int flags, int fd, off_t offset);
void *WRAP(mmap64)(void *address, size_t length, int protection, int flags, int fd, off_t offset);
int WRAP(munmap)(void *address, size_t length);
void *WRAP(mremap)(void *old, size_t old_length, size_t length, int flags, ...);

void *WRAP(mmap)(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    void *mapped;

    lock();
    mapped = REAL(mmap)(address, length, protection, flags, fd, offset);
    if (mapped != MAP_FAILED) {
        if (flags & MAP_FIXED) {
            take_range((uintptr_t)mapped, length); /* what it replaced */
        }
        add_range((uintptr_t)mapped, length);
        allocations++;
    }
    unlock();
    return mapped;
}

/* The same function on every platform with a 64-bit off_t. */
void *WRAP(mmap64)(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    return WRAP(mmap)(address, length, protection, flags, fd, offset);
}

int WRAP(munmap)(void *address, size_t length)
{
    int code;

    lock();
    code = REAL(munmap)(address, length);
    if (code == 0) {
        take_range((uintptr_t)address, length);
    }
    unlock();
    return code;
}

void *WRAP(mremap)(void *old, size_t old_length, size_t length, int flags, ...)
{
    void *target = NULL, *mapped;

    if (flags & MREMAP_FIXED) {
        va_list rest;

        va_start(rest, flags);
        target = va_arg(rest, void *);
        va_end(rest);
    }
    lock();
    mapped = REAL(mremap)(old, old_length, length, flags, target);
    if (mapped != MAP_FAILED) {
        if (old_length != 0) { /* 0 makes a second view of a shared mapping */
            take_range((uintptr_t)old, old_length);
        }
        if (flags & MREMAP_FIXED) {
            take_range((uintptr_t)mapped, length);
        }
        add_range((uintptr_t)mapped, length);
        allocations++;
    }
    unlock();
    return mapped;
}

/* ---- for the worker ---- */

void campaign_memory_reset(void)
{
    lock();
    base += live;
    live = 0;
    peak = 0;
    allocations = 0;
    unlock();
}

/* A figure under the lock; what would be negative reads as 0. */
static unsigned long long figure(const long long *value)
{
    long long copy;

    lock();
    copy = *value;
    unlock();
    return copy > 0 ? (unsigned long long)copy : 0;
}

unsigned long long campaign_memory_peak(void)
{
    return figure(&peak);
}

unsigned long long campaign_memory_live(void)
{
    return figure(&live);
}

unsigned long long campaign_memory_base(void)
{
    return figure(&base);
}

unsigned long long campaign_memory_allocations(void)
{
    return allocations;
}

unsigned long long campaign_memory_overflow(void)
{
    return overflow;
}
