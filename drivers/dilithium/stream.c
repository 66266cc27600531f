/*
 * The stream library of the file-size study: PQClean's C, unmodified, signs a message that never is in memory.
 *
 * Dilithium and ML-DSA read the message once, in one call of shake256_inc_absorb. Linked with
 * -Wl,--wrap=shake256_inc_absorb, that call arrives here. If its input is the pointer of
 * campaign_stream_pointer, the file is read in chunks and each chunk is absorbed; every other call is passed on.
 * SHAKE absorbs in any division alike, so the signature does not depend on the chunk.
 *
 * shake256_inc_absorb returns nothing: an error is kept, the scheme ends with a meaningless hash, and the adapter
 * returns the error in place of its result. Declared and explained in campaign_abi.h.
 */
#define _XOPEN_SOURCE 700 /* pread, clock_gettime, st_mtim */

#include "campaign_abi.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* CLOCK_MONOTONIC_RAW is Linux's own and hidden by the feature macro above. */
#ifndef CLOCK_MONOTONIC_RAW
#define CLOCK_MONOTONIC_RAW 4
#endif

extern void __real_shake256_inc_absorb(void *state, const uint8_t *input, size_t length);
void __wrap_shake256_inc_absorb(void *state, const uint8_t *input, size_t length);

/* Static, so that the timed operation allocates nothing; pages beyond the chunk are never touched. */
static unsigned char buffer[CAMPAIGN_STREAM_CHUNK_MAX] __attribute__((aligned(4096)));

/* Its address is the sentinel: no other object has it, and nothing reads through it. */
static unsigned char sentinel;

static struct {
    int fd;
    int error;
    size_t chunk;
    unsigned long long bytes;
    unsigned long long bytes_read, read_ns, hash_ns;
    struct stat at_open;
} file = {-1, CAMPAIGN_STREAM_ARGUMENT, 0, 0, 0, 0, 0, {0}};

static unsigned long long now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC_RAW, &t); /* cannot fail for this clock and a valid address */
    return (unsigned long long)t.tv_sec * 1000000000ULL + (unsigned long long)t.tv_nsec;
}

static int same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Whether the descriptor still shows the file as it was at open; the access time may differ. */
static int unchanged(void)
{
    struct stat s;

    return fstat(file.fd, &s) == 0 && s.st_dev == file.at_open.st_dev && s.st_ino == file.at_open.st_ino &&
           s.st_size == file.at_open.st_size && same_time(s.st_mtim, file.at_open.st_mtim) &&
           same_time(s.st_ctim, file.at_open.st_ctim);
}

int campaign_stream_open(int fd, unsigned long long bytes, unsigned long long chunk)
{
    file.fd = -1;
    file.error = CAMPAIGN_STREAM_ARGUMENT; /* until all is well, no message can be read */
    file.bytes_read = file.read_ns = file.hash_ns = 0;
    if (chunk > CAMPAIGN_STREAM_CHUNK_MAX) {
        return CAMPAIGN_STREAM_ARGUMENT;
    }
    if (fstat(fd, &file.at_open) != 0 || !S_ISREG(file.at_open.st_mode)) {
        return file.error = CAMPAIGN_STREAM_NOT_A_FILE;
    }
    if ((unsigned long long)file.at_open.st_size != bytes) {
        return file.error = CAMPAIGN_STREAM_CHANGED;
    }
    file.fd = fd;
    file.bytes = bytes;
    file.chunk = (size_t)(chunk != 0 ? chunk : CAMPAIGN_STREAM_CHUNK);
    file.error = 0;
    return 0;
}

/* Fills the buffer with `want` bytes from `offset`. Returns 0 or a code. */
static int read_chunk(size_t want, unsigned long long offset)
{
    size_t got = 0;

    while (got < want) {
        const ssize_t n = pread(file.fd, buffer + got, want - got, (off_t)(offset + got));

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return CAMPAIGN_STREAM_READ;
        }
        if (n == 0) {
            return CAMPAIGN_STREAM_SHORT;
        }
        got += (size_t)n;
    }
    return 0;
}

static int absorb_file(void *state)
{
    unsigned long long offset = 0;

    while (offset < file.bytes) {
        const unsigned long long left = file.bytes - offset;
        const size_t want = left < file.chunk ? (size_t)left : file.chunk;
        const unsigned long long start = now_ns();
        const int code = read_chunk(want, offset);
        const unsigned long long middle = now_ns();

        file.read_ns += middle - start;
        if (code != 0) {
            return code;
        }
        file.bytes_read += want;
        __real_shake256_inc_absorb(state, buffer, want);
        file.hash_ns += now_ns() - middle;
        offset += want;
    }
    return unchanged() ? 0 : CAMPAIGN_STREAM_CHANGED;
}

void __wrap_shake256_inc_absorb(void *state, const uint8_t *input, size_t length)
{
    if (input != &sentinel) {
        __real_shake256_inc_absorb(state, input, length);
        return;
    }
    if (file.error == 0) {
        file.error = length == file.bytes ? absorb_file(state) : CAMPAIGN_STREAM_ARGUMENT;
    }
}

unsigned char *campaign_stream_pointer(void)
{
    return &sentinel;
}

int campaign_stream_error(void)
{
    return file.error;
}

unsigned long long campaign_stream_bytes_read(void)
{
    return file.bytes_read;
}

unsigned long long campaign_stream_read_ns(void)
{
    return file.read_ns;
}

unsigned long long campaign_stream_hash_ns(void)
{
    return file.hash_ns;
}
