/*
 * Prints the known answers of the instance that it is linked with, by the flow of
 * the NGCC programme, and says on stderr how long each operation took.
 *
 * usage: dove_kat [RECORDS]      (10 when absent)
 *
 * Source: NGCC Round 1, KAT files of signature candidates.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "SIG_AlgorithmInstance.h"
#include "drng.h"

DRNG_ctx drng_algorithm;

static void put_hex(const char *name, const unsigned char *bytes, size_t n)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t i;

    printf("%s = ", name);
    for (i = 0; i < n; i++) {
        putchar(digits[bytes[i] >> 4]);
        putchar(digits[bytes[i] & 15]);
    }
    putchar('\n');
}

static void put(const char *name, const unsigned char *bytes, unsigned long long n)
{
    printf("%s_Len = %llu\n", name, n);
    put_hex(name, bytes, (size_t)n);
}

static double seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static unsigned char *take(unsigned long long n)
{
    unsigned char *const p = malloc((size_t)n);

    if (p == NULL)
        exit(3);
    return p;
}

/* One record; returns the first result that is not 0. */
static int record(int i, const unsigned char *seed, unsigned char *m, unsigned long long m_len)
{
    unsigned long long pk_len = sig_get_pk_len_bytes(), sk_len = sig_get_sk_len_bytes();
    unsigned long long sn_len = sig_get_sn_len_bytes();
    unsigned char *pk = take(pk_len), *sk = take(sk_len), *sn = take(sn_len);
    double at[4];
    int rc;

    init_random_number(&drng_algorithm, seed, 64);
    at[0] = seconds();
    rc = sig_keygen(pk, &pk_len, sk, &sk_len);
    at[1] = seconds();
    if (rc == 0)
        rc = sig_sign(sk, sk_len, m, m_len, sn, &sn_len);
    at[2] = seconds();
    if (rc == 0)
        rc = sig_verify(pk, pk_len, sn, sn_len, m, m_len);
    at[3] = seconds();
    fprintf(stderr, "record %d: keygen %.4f s, sign %.4f s, verify %.4f s\n", i, at[1] - at[0],
            at[2] - at[1], at[3] - at[2]);
    printf("Count = %d\n", i);
    put("Seed", seed, 64);
    put("PK", pk, pk_len);
    put("SK", sk, sk_len);
    put("M", m, m_len);
    put("Sn", sn, sn_len);
    putchar('\n');
    free(pk);
    free(sk);
    free(sn);
    return rc;
}

int main(int argc, char **argv)
{
    const int records = argc > 1 ? atoi(argv[1]) : 10;
    unsigned char seed[64], m[56 + 8 * 9];
    DRNG_ctx drng_seed, drng_msg;
    char text[65];
    int i, rc = 0;

    for (i = 0; i < 16; i++)
        memcpy(text + 4 * i, "seed", 4);
    init_random_number(&drng_seed, (const unsigned char *)text, 64);
    for (i = 0; i < 22; i++)
        memcpy(text + 3 * i, "msg", i < 21 ? 3 : 1);
    init_random_number(&drng_msg, (const unsigned char *)text, 64);
    for (i = 0; i < records && i < 10 && rc == 0; i++) {
        const unsigned long long m_len = 56 + 8 * (unsigned long long)i;

        get_random_number(&drng_seed, seed, 8 * sizeof seed);
        get_random_number(&drng_msg, m, 8 * m_len);
        rc = record(i, seed, m, m_len);
    }
    if (rc != 0)
        fprintf(stderr, "dove_kat: an operation returned %d\n", rc);
    return rc != 0;
}
