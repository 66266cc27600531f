/*
 * The deterministic random generator of the NGCC programme, as a candidate and
 * its driver see it.
 *
 * It is the Hash_DRBG of SP 800-90A Rev. 1 (10.1.1) with SM3 and a seed length
 * of 440 bits, without reseeding and without a limit on requests. A candidate
 * reads randomness only through the global `drng_algorithm`, which the driver
 * defines and seeds; the length of a request is in BITS, that of a seed in BYTES.
 *
 * Source: NGCC Round 1, helper functions (drng.h).
 */
#ifndef DRNG_H
#define DRNG_H

#ifdef __cplusplus
extern "C" {
#endif

/* State: three 440-bit big-endian integers. V and C are secret. */
typedef struct {
    unsigned char V[55];
    unsigned char C[55];
    unsigned char reseed_counter[55];
} DRNG_ctx;

/* The generator of a candidate; defined by the driver, not by the candidate. */
extern DRNG_ctx drng_algorithm;

/*
 * Instantiates a generator: V = df(seed), C = df(00 || V), counter 1.
 *
 * d               state, written
 * seed, seed_len  seed and its length in BYTES, at most 2^61 - 7 (SM3
 *                 counts bits in 64 bits); seed may be NULL when seed_len is 0
 *
 * Returns 0, or -5 for a seed that is too long (d is zeroed).
 */
int init_random_number(DRNG_ctx *d, const unsigned char *seed, unsigned long long seed_len);

/*
 * Draws bits and moves the state on by one step, whatever the length.
 *
 * d        state, read and written
 * out      ceil(out_bits / 8) bytes, written; unused low bits of the last are zero
 *
 * Returns 0; there is no failure.
 */
int get_random_number(DRNG_ctx *d, unsigned char *out, unsigned long long out_bits);

#ifdef __cplusplus
}
#endif

#endif
