/*
 * Key generation: what both variants share. How a variant lays out its keys,
 * and in which order it expands what, is in classic.c and pkc_skc.c (variant.h).
 *
 * Source: [DOVE], key generation.
 */
#ifndef DOVE_KEYGEN_H
#define DOVE_KEYGEN_H

#include "secret.h"

/* A key generation in progress. Everything but seed_pk and what P_i3 or an A_k
 * leaves in `bytes` is secret. */
typedef struct {
    unsigned char seed_sk[DOVE_SEED_SK];
    unsigned char seed_pk[DOVE_SEED_PK];
    dove_secret secret;
    dove_row p3[DOVE_O]; /* P_i3 before Upper() */
    unsigned char bytes[DOVE_SECRET_BYTES]; /* one output of XOF, of any kind */
} dove_keygen_work;

/*
 * Makes a key pair: one request to the DRNG, then everything from that seed.
 *
 * pk  DOVE_PK_BYTES, written; its content is undefined on error
 * sk  DOVE_SK_BYTES, written; its content is undefined on error
 *
 * Returns 0, DOVE_ERR_MEMORY, DOVE_ERR_RANDOM or DOVE_ERR_XOF.
 */
int dove_keygen(unsigned char *pk, unsigned char *sk);

/*
 * out = P_i3 = Upper(B_k1 C_k2 + T^t P_i2), packed, DOVE_P3_BYTES; this is a part
 * of the public key and declassified here.
 *
 * p2  P_i2, DOVE_P2_BYTES
 */
void dove_keygen_p3(unsigned char *out, dove_keygen_work *work, unsigned i,
                    const unsigned char *p2);

#endif
