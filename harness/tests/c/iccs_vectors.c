/*
 * Runs the helper functions of drivers/iccs on requests read from stdin and
 * prints the results, so that a test can compare them with published vectors.
 *
 * One request a line, lengths in bits unless said otherwise:
 *   sm3 DIGEST_BITS M_BITS HEX     hash DIGEST_BITS M_BITS HEX
 *   xof OUT_BITS M_BITS HEX        seed HEX
 *   draw OUT_BITS                  toolong
 * `toolong` asks pseudoXOF for one bit more than its counter can number.
 * HEX is `-` when empty. One answer a line: the return code, a space, and the
 * output in lower-case hex. Each input and output buffer is exactly as long as
 * its length in bits asks for, so a sanitizer sees any byte read or written
 * beyond it; the low bits of an input's last byte are set, and must not matter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auxfunc.h"
#include "drng.h"

DRNG_ctx drng_algorithm;

static void *take(size_t n)
{
    void *const p = malloc(n == 0 ? 1 : n);

    if (p == NULL) {
        fputs("iccs_vectors: out of memory\n", stderr);
        exit(3);
    }
    return p;
}

static unsigned char *unhex(const char *hex, size_t *n)
{
    unsigned char *bytes;
    size_t i;

    *n = strcmp(hex, "-") == 0 ? 0 : strlen(hex) / 2;
    bytes = take(*n);
    for (i = 0; i < *n; i++) {
        unsigned byte;

        if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
            exit(2);
        bytes[i] = (unsigned char)byte;
    }
    return bytes;
}

static void answer(int rc, const unsigned char *out, size_t n)
{
    size_t i;

    printf("%d ", rc);
    for (i = 0; i < n; i++)
        printf("%02x", out[i]);
    putchar('\n');
}

/* A message of m_bits whose bits beyond the end are all set. */
static unsigned char *message(const char *hex, unsigned long long m_bits)
{
    size_t n;
    unsigned char *m = unhex(hex, &n);

    if (n != (m_bits + 7) / 8)
        exit(2);
    if (m_bits % 8 != 0)
        m[n - 1] = (unsigned char)(m[n - 1] | 0xffu >> (m_bits % 8));
    return m;
}

static void hash_request(const char *what, unsigned long long bits, unsigned long long m_bits,
                         const char *hex)
{
    const size_t n = (size_t)((bits + 7) / 8);
    unsigned char *m = message(hex, m_bits);
    unsigned char *out = take(n);
    int rc;

    memset(out, 0xee, n);
    if (strcmp(what, "sm3") == 0)
        rc = sm3hash((int)bits, m, m_bits, out);
    else if (strcmp(what, "hash") == 0)
        rc = pseudohash((int)bits, m, m_bits, out);
    else
        rc = pseudoXOF(bits, m, m_bits, out);
    answer(rc, out, n);
    free(m);
    free(out);
}

static void seed_request(const char *hex)
{
    size_t n;
    unsigned char *seed = unhex(hex, &n);

    answer(init_random_number(&drng_algorithm, seed, n), seed, 0);
    free(seed);
}

static void draw_request(unsigned long long bits)
{
    const size_t n = (size_t)((bits + 7) / 8);
    unsigned char *out = take(n);

    answer(get_random_number(&drng_algorithm, out, bits), out, n);
    free(out);
}

static void too_long_request(void)
{
    unsigned char out = 0xee;

    answer(pseudoXOF(256 * 0xffffffffULL + 1, NULL, 0, &out), &out, 1);
}

int main(void)
{
    static char line[1 << 16], hex[1 << 16];
    char what[8];
    unsigned long long bits, m_bits;

    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "seed %65535s", hex) == 1)
            seed_request(hex);
        else if (sscanf(line, "draw %llu", &bits) == 1)
            draw_request(bits);
        else if (strcmp(line, "toolong\n") == 0)
            too_long_request();
        else if (sscanf(line, "%7s %llu %llu %65535s", what, &bits, &m_bits, hex) == 4)
            hash_request(what, bits, m_bits, hex);
        else
            return 2;
    }
    return 0;
}
