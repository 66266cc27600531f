/*
 * The deterministic random generator of the NGCC programme: Hash_DRBG of
 * SP 800-90A Rev. 1 with SM3 (10.1.1), derivation function Hash_df (10.3.1),
 * seed length 440 bits. There is no reseeding and no limit on requests.
 */
#include "drng.h"

#include <string.h>

#include "sm3.h"

#define ERR_LENGTH (-5)

#define SEED_BYTES 55 /* seedlen = 440 bits, SP 800-90A table 2 */
#define DIGEST ICCS_SM3_DIGEST_BYTES

/* v = v + x modulo 2^440, both big-endian; x has n <= 55 bytes. No branch on v, x. */
static void add(unsigned char v[SEED_BYTES], const unsigned char *x, unsigned n)
{
    unsigned carry = 0, i;

    for (i = 0; i < SEED_BYTES; i++) {
        carry += v[SEED_BYTES - 1 - i];
        if (i < n)
            carry += x[n - 1 - i];
        v[SEED_BYTES - 1 - i] = (unsigned char)(carry & 0xff);
        carry >>= 8;
    }
}

/* digest = SM3(lead || x), x of n bytes. */
static void hash_led(unsigned char lead, const unsigned char *x, unsigned n,
                     unsigned char digest[DIGEST])
{
    iccs_sm3_ctx c;

    iccs_sm3_init(&c);
    iccs_sm3_update(&c, &lead, 8);
    iccs_sm3_update(&c, x, 8 * (unsigned long long)n);
    iccs_sm3_final(&c, digest);
    iccs_wipe(&c, sizeof c);
}

/*
 * Hash_df for 440 bits: SM3(01 || BE32(440) || x) || SM3(02 || BE32(440) || x),
 * first 55 bytes. With lead != NULL, x is preceded by that byte.
 */
static void df(unsigned char out[SEED_BYTES], const unsigned char *lead, const unsigned char *x,
               unsigned long long n)
{
    unsigned char head[5] = {0, 0x00, 0x00, 0x01, 0xb8}; /* 0x1b8 = 440 */
    unsigned char both[2 * DIGEST];
    iccs_sm3_ctx c;
    unsigned i;

    for (i = 0; i < 2; i++) {
        head[0] = (unsigned char)(i + 1);
        iccs_sm3_init(&c);
        iccs_sm3_update(&c, head, 8 * sizeof head);
        if (lead != NULL)
            iccs_sm3_update(&c, lead, 8);
        iccs_sm3_update(&c, x, 8 * n);
        iccs_sm3_final(&c, both + i * DIGEST);
    }
    memcpy(out, both, SEED_BYTES);
    iccs_wipe(&c, sizeof c);
    iccs_wipe(both, sizeof both);
}

int init_random_number(DRNG_ctx *d, const unsigned char *seed, unsigned long long seed_len)
{
    static const unsigned char zero = 0;

    memset(d, 0, sizeof *d);
    if (seed_len > ~0ULL / 8 - 6) /* SM3 counts bits in 64 bits; 5 bytes precede */
        return ERR_LENGTH;
    df(d->V, NULL, seed, seed_len);
    df(d->C, &zero, d->V, SEED_BYTES);
    d->reseed_counter[SEED_BYTES - 1] = 1;
    return 0;
}

/* Hashgen, SP 800-90A 10.1.1.4: SM3(V) || SM3(V+1) || ..., truncated. */
static void hashgen(const unsigned char v[SEED_BYTES], unsigned char *out,
                    unsigned long long out_bits)
{
    static const unsigned char one = 1;
    const unsigned long long bytes = out_bits / 8 + (out_bits % 8 != 0);
    unsigned char data[SEED_BYTES], digest[DIGEST];
    unsigned long long done;
    iccs_sm3_ctx c;

    memcpy(data, v, SEED_BYTES);
    for (done = 0; done < bytes; done += DIGEST) {
        iccs_sm3_init(&c);
        iccs_sm3_update(&c, data, 8 * sizeof data);
        iccs_sm3_final(&c, digest);
        memcpy(out + done, digest, bytes - done < DIGEST ? (size_t)(bytes - done) : DIGEST);
        add(data, &one, 1);
    }
    iccs_mask_tail(out, out_bits);
    iccs_wipe(&c, sizeof c);
    iccs_wipe(data, sizeof data);
    iccs_wipe(digest, sizeof digest);
}

int get_random_number(DRNG_ctx *d, unsigned char *out, unsigned long long out_bits)
{
    static const unsigned char one = 1;
    unsigned char h[DIGEST];

    hashgen(d->V, out, out_bits);
    /* 10.1.1.4: V = V + SM3(03 || V) + C + reseed_counter; then count. */
    hash_led(3, d->V, SEED_BYTES, h);
    add(d->V, h, sizeof h);
    add(d->V, d->C, SEED_BYTES);
    add(d->V, d->reseed_counter, SEED_BYTES);
    add(d->reseed_counter, &one, 1);
    iccs_wipe(h, sizeof h);
    return 0;
}
