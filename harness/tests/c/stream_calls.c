/*
 * A file as the message (drivers/dilithium/stream.c): the same signature as from memory for any chunk, and each
 * error in its place. The argument is a file that may be written. Expected lines are in drivers_dilithium.rs.
 */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "campaign_abi.h"
#include "sig_api.h"

#define BYTES 200003u /* no multiple of any chunk below but 1 */

static unsigned char message[BYTES];
static unsigned char pk[4096], sk[8192], expected[8192], sn[8192];
static unsigned long long pk_bytes, sk_bytes, sn_bytes;

/* The same randomness for each signature. */
static int sign(unsigned char *m, unsigned long long bytes, unsigned char *out)
{
    static const unsigned char seed[4] = {1, 2, 3, 4};

    sn_bytes = sig_get_sn_len_bytes();
    memset(out, 0, (size_t)sn_bytes);
    campaign_seed(seed, sizeof seed);
    return sig_sign(sk, sk_bytes, m, bytes, out, &sn_bytes);
}

static int sign_file(unsigned long long bytes)
{
    return sign(campaign_stream_pointer(), bytes, sn);
}

static int verify_file(void)
{
    return sig_verify(pk, pk_bytes, expected, sig_get_sn_len_bytes(), campaign_stream_pointer(), BYTES);
}

static int write_file(const char *path)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, message, BYTES) != (ssize_t)BYTES) {
        perror(path);
        exit(1);
    }
    return fd;
}

static void chunks(int fd)
{
    static const unsigned long long sizes[] = {0, 1, 136, 4096, 65536, 1048576};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int opened = campaign_stream_open(fd, BYTES, sizes[i]);
        const int made = sign_file(BYTES);

        printf("chunk %llu: %d %d %d", sizes[i], opened, made, memcmp(sn, expected, sizeof sn) == 0);
        printf(" %d", verify_file());
        printf(" %llu\n", campaign_stream_bytes_read());
    }
}

static void refusals(int fd, const char *path)
{
    int null = open("/dev/null", O_RDONLY), folder = open("/", O_RDONLY);
    struct timespec old[2] = {{0, UTIME_OMIT}, {1, 0}};

    printf("chunk too large %d", campaign_stream_open(fd, BYTES, 1048577));
    printf(" %d\n", sign_file(BYTES));
    printf("another length %d", campaign_stream_open(fd, BYTES + 1, 0));
    printf(" %d\n", sign_file(BYTES + 1));
    printf("not a file %d %d %d\n", campaign_stream_open(null, 0, 0), campaign_stream_open(folder, 0, 0),
           campaign_stream_open(-1, 0, 0));
    campaign_stream_open(fd, BYTES, 0);
    printf("message of another length %d\n", sign_file(BYTES - 1));
    printf("which stays %d", campaign_stream_error());
    printf(" %d\n", verify_file());
    campaign_stream_open(fd, BYTES, 0);
    printf("opened again %d\n", verify_file());

    campaign_stream_open(fd, BYTES, 0);
    if (futimens(fd, old) != 0) {
        perror(path);
    }
    printf("changed %d\n", sign_file(BYTES));
    campaign_stream_open(fd, BYTES, 0);
    if (ftruncate(fd, BYTES / 2) != 0) {
        perror(path);
    }
    printf("short %d", sign_file(BYTES));
    printf(" %llu %d\n", sn_bytes, sn[0]);
    printf("verify short %d\n", verify_file());
    printf("memory still works %d\n", sign(message, BYTES, sn));
}

int main(int argc, char **argv)
{
    static const unsigned char seed[1] = {7};
    int fd;

    if (argc != 2) {
        return 2;
    }
    for (unsigned i = 0; i < BYTES; i++) {
        message[i] = (unsigned char)(i * 2654435761u >> 13);
    }
    pk_bytes = sig_get_pk_len_bytes();
    sk_bytes = sig_get_sk_len_bytes();
    campaign_seed(seed, sizeof seed);
    if (sig_keygen(pk, &pk_bytes, sk, &sk_bytes) != 0) {
        return 1;
    }
    printf("nothing opened %d\n", sign_file(BYTES));
    if (sign(message, BYTES, expected) != 0) {
        return 1;
    }
    fd = write_file(argv[1]);
    chunks(fd);
    refusals(fd, argv[1]);
    campaign_stream_open(fd, 0, 0);
    if (ftruncate(fd, 0) != 0) {
        perror(argv[1]);
    }
    printf("empty file %d", campaign_stream_open(fd, 0, 0));
    printf(" %d\n", sign_file(0));
    return 0;
}
