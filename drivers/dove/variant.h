/*
 * What the two variants do differently: how keys are laid out, and what is read
 * from a key or expanded anew. classic.c and pkc_skc.c each implement this
 * header; the one that params.h does not select compiles to nothing.
 *
 * Source: [DOVE], the variants "classic" and "pkc+skc".
 */
#ifndef DOVE_VARIANT_H
#define DOVE_VARIANT_H

#include "keygen.h"
#include "secret.h"

/*
 * Steps 3 and 4 of key generation: completes both keys.
 *
 * pk    DOVE_PK_BYTES, written
 * sk    DOVE_SK_BYTES, written
 * work  seeds and secret.t are set; the rest is used up
 *
 * Returns 0 or DOVE_ERR_XOF.
 */
int dove_variant_keygen(unsigned char *pk, unsigned char *sk, dove_keygen_work *work);

/* A secret key opened for signing. Pointers lead into the key or into `owned`. */
typedef struct {
    const unsigned char *seed_sk; /* DOVE_SEED_SK, secret */
    const unsigned char *seed_pk; /* DOVE_SEED_PK */
    const unsigned char *a; /* l times DOVE_A_BYTES */
    const unsigned char *p2; /* m times DOVE_P2_BYTES */
    dove_secret *secret; /* allocated */
    unsigned char *owned; /* allocated, or NULL */
    size_t owned_len;
} dove_signing_key;

/*
 * Opens a secret key. Whatever it returns, close the key afterwards.
 *
 * key  written
 * sk   DOVE_SK_BYTES, which must outlive the key
 *
 * Returns 0, DOVE_ERR_MEMORY or DOVE_ERR_XOF.
 */
int dove_signing_key_open(dove_signing_key *key, const unsigned char *sk);

/* Erases and frees what opening allocated. */
void dove_signing_key_close(dove_signing_key *key);

/* A public key opened for verification. All of it is public. */
typedef struct {
    const unsigned char *seed_pk; /* DOVE_SEED_PK */
    const unsigned char *a; /* l times DOVE_A_BYTES */
    const unsigned char *p3; /* m times DOVE_P3_BYTES */
    const unsigned char *p2; /* classic: m times DOVE_P2_BYTES; pkc_skc: one of them */
    unsigned char *owned; /* allocated, or NULL */
    size_t owned_len;
} dove_public_key;

/*
 * Opens a public key. Whatever it returns, close the key afterwards.
 *
 * key  written
 * pk   DOVE_PK_BYTES, which must outlive the key
 *
 * Returns 0, DOVE_ERR_MEMORY or DOVE_ERR_XOF.
 */
int dove_public_key_open(dove_public_key *key, const unsigned char *pk);

/*
 * p2 = P_i2, DOVE_P2_BYTES, valid until the next call for the same key; i < m.
 *
 * Returns 0 or DOVE_ERR_XOF.
 */
int dove_public_key_p2(const dove_public_key *key, unsigned i, const unsigned char **p2);

/* Frees what opening allocated. */
void dove_public_key_close(dove_public_key *key);

#endif
