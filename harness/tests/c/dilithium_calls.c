/*
 * The ICCS API of drivers/dilithium/adapter.c at its edges. One line a check: name and result; what they must be
 * is in drivers_dilithium.rs. Linked with memory.c, so that the heap of each operation is exact.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "campaign_abi.h"
#include "sig_api.h"

static int code_of_generator;

static int zeros(void *ctx, unsigned char *out, unsigned long long bits)
{
    (void)ctx;
    memset(out, 0x5a, (size_t)(bits / 8));
    return code_of_generator;
}

static int all_zero(const unsigned char *bytes, unsigned long long n)
{
    for (unsigned long long i = 0; i < n; i++) {
        if (bytes[i] != 0) {
            return 0;
        }
    }
    return 1;
}

/* Buffers one byte off every alignment, with a guard byte behind. */
static unsigned char *buffer(unsigned long long bytes)
{
    unsigned char *b = malloc((size_t)bytes + 2);

    if (b == NULL) {
        exit(1);
    }
    memset(b, 0xa5, (size_t)bytes + 2);
    return b + 1;
}

int main(void)
{
    static const unsigned char seed[32] = {9};
    const unsigned long long pk_bytes = sig_get_pk_len_bytes(), sk_bytes = sig_get_sk_len_bytes();
    const unsigned long long sn_bytes = sig_get_sn_len_bytes();
    unsigned char *pk = buffer(pk_bytes), *sk = buffer(sk_bytes), *sn = buffer(sn_bytes), m[64] = {1, 2, 3};
    unsigned long long a = pk_bytes, b = sk_bytes, c = sn_bytes;

    printf("lengths %llu %llu %llu\n", pk_bytes, sk_bytes, sn_bytes);
    campaign_seed(seed, sizeof seed);

    campaign_memory_reset();
    printf("keygen %d\n", sig_keygen(pk, &a, sk, &b));
    printf("heap %llu %llu\n", campaign_memory_peak(), campaign_memory_live());
    campaign_memory_reset();
    printf("sign %d\n", sig_sign(sk, sk_bytes, m, sizeof m, sn, &c));
    printf("heap %llu %llu\n", campaign_memory_peak(), campaign_memory_live());
    campaign_memory_reset();
    printf("verify %d\n", sig_verify(pk, pk_bytes, sn, sn_bytes, m, sizeof m));
    printf("heap %llu %llu\n", campaign_memory_peak(), campaign_memory_live());
    printf("written %d\n", a == pk_bytes && b == sk_bytes && c == sn_bytes);
    printf("guards %d\n", pk[pk_bytes] == 0xa5 && sk[sk_bytes] == 0xa5 && sn[sn_bytes] == 0xa5);

    m[63] ^= 1;
    printf("message flip %d\n", sig_verify(pk, pk_bytes, sn, sn_bytes, m, sizeof m));
    m[63] ^= 1;
    sn[0] ^= 1;
    printf("signature flip %d\n", sig_verify(pk, pk_bytes, sn, sn_bytes, m, sizeof m));
    sn[0] ^= 1;
    pk[40] ^= 1;
    printf("key flip %d\n", sig_verify(pk, pk_bytes, sn, sn_bytes, m, sizeof m));
    pk[40] ^= 1;
    printf("short signature %d\n", sig_verify(pk, pk_bytes, sn, sn_bytes - 1, m, sizeof m));
    printf("long signature %d\n", sig_verify(pk, pk_bytes, sn, sn_bytes + 1, m, sizeof m));
    printf("short key %d\n", sig_verify(pk, pk_bytes - 1, sn, sn_bytes, m, sizeof m));
    printf("no key %d\n", sig_verify(NULL, pk_bytes, sn, sn_bytes, m, sizeof m));
    printf("no message %d\n", sig_verify(pk, pk_bytes, sn, sn_bytes, NULL, 1));
    printf("still valid %d\n", sig_verify(pk, pk_bytes, sn, sn_bytes, m, sizeof m));

    c = sn_bytes;
    printf("empty message %d", sig_sign(sk, sk_bytes, NULL, 0, sn, &c));
    printf(" %d\n", sig_verify(pk, pk_bytes, sn, sn_bytes, NULL, 0));

    c = sn_bytes - 1;
    printf("sign room %d", sig_sign(sk, sk_bytes, m, sizeof m, sn, &c));
    printf(" %llu %d\n", c, all_zero(sn, sn_bytes - 1));
    c = sn_bytes;
    sn[0] = 1;
    printf("sign key length %d", sig_sign(sk, sk_bytes + 1, m, sizeof m, sn, &c));
    printf(" %llu %d\n", c, all_zero(sn, sn_bytes));
    printf("sign nothing %d\n", sig_sign(sk, sk_bytes, m, sizeof m, sn, NULL));
    a = pk_bytes;
    b = sk_bytes - 1;
    printf("keygen room %d", sig_keygen(pk, &a, sk, &b));
    printf(" %llu %llu %d\n", a, b, all_zero(pk, pk_bytes) && all_zero(sk, sk_bytes - 1));

    campaign_random(zeros, NULL);
    a = pk_bytes;
    b = sk_bytes;
    printf("keygen other %d\n", sig_keygen(pk, &a, sk, &b));
    code_of_generator = 1;
    c = sn_bytes;
    printf("sign random %d\n", sig_sign(sk, sk_bytes, m, sizeof m, sn, &c));
    a = pk_bytes;
    b = sk_bytes;
    printf("keygen random %d", sig_keygen(pk, &a, sk, &b));
    printf(" %llu %llu %d\n", a, b, all_zero(pk, pk_bytes) && all_zero(sk, sk_bytes));
    code_of_generator = 0;
    a = pk_bytes;
    b = sk_bytes;
    printf("keygen again %d\n", sig_keygen(pk, &a, sk, &b));
    return 0;
}
