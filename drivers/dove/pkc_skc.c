/*
 * The compressed variant, pkc_skc: a key holds seeds and what they do not give,
 * and every operation expands the rest again; see variant.h.
 *
 *   pk = seed_pk || P_i3, i < m          sk = seed_sk
 */
#include "variant.h"

#ifdef DOVE_PKC_SKC

#include <string.h>

#include "ct.h"
#include "expand.h"

int dove_variant_keygen(unsigned char *pk, unsigned char *sk, dove_keygen_work *work)
{
    unsigned k, i;
    int rc = 0;

    memcpy(sk, work->seed_sk, DOVE_SEED_SK);
    memcpy(pk, work->seed_pk, DOVE_SEED_PK);
    for (k = 0; k < DOVE_L && rc == 0; k++) {
        rc = dove_expand_a(work->bytes, work->seed_pk, k);
        if (rc == 0)
            dove_secret_derive(&work->secret, k, work->bytes);
    }
    for (i = 0; i < DOVE_O && rc == 0; i++) {
        rc = dove_expand_p2(work->bytes, work->seed_pk, i);
        if (rc == 0)
            dove_keygen_p3(pk + DOVE_PK_P3 + i * DOVE_P3_BYTES, work, i, work->bytes);
    }
    return rc;
}

/* What opening a secret key expands; one block of memory. */
typedef struct {
    unsigned char secret[DOVE_SECRET_BYTES]; /* seed_pk || T */
    unsigned char a[DOVE_L * DOVE_A_BYTES];
    unsigned char p2[DOVE_O * DOVE_P2_BYTES]; /* kept: a second draw needs it again */
} expanded_key;

/* Fills the block, and derives T, C_k, B_k from it. */
static int expand_signing_key(expanded_key *e, dove_secret *secret, const unsigned char *sk)
{
    unsigned k, i;
    int rc = dove_expand_secret(e->secret, sk);

    if (rc != 0)
        return rc;
    /* Secret becomes public: seed_pk, a part of the public key (see keygen.c). */
    DOVE_DECLASSIFY(e->secret, DOVE_SEED_PK);
    dove_secret_load_t(secret, e->secret + DOVE_SEED_PK);
    for (k = 0; k < DOVE_L && rc == 0; k++) {
        rc = dove_expand_a(e->a + k * DOVE_A_BYTES, e->secret, k);
        if (rc == 0)
            dove_secret_derive(secret, k, e->a + k * DOVE_A_BYTES);
    }
    for (i = 0; i < DOVE_O && rc == 0; i++)
        rc = dove_expand_p2(e->p2 + i * DOVE_P2_BYTES, e->secret, i);
    return rc;
}

int dove_signing_key_open(dove_signing_key *key, const unsigned char *sk)
{
    expanded_key *const e = dove_alloc(sizeof *e);

    key->secret = dove_alloc(sizeof *key->secret);
    key->owned = (unsigned char *)e;
    key->owned_len = sizeof *e;
    if (e == NULL || key->secret == NULL)
        return DOVE_ERR_MEMORY;
    key->seed_sk = sk;
    key->seed_pk = e->secret;
    key->a = e->a;
    key->p2 = e->p2;
    return expand_signing_key(e, key->secret, sk);
}

/* What opening a public key expands, and the P_i2 in use; one block of memory. */
typedef struct {
    unsigned char a[DOVE_L * DOVE_A_BYTES];
    unsigned char p2[DOVE_P2_BYTES];
} expanded_public;

int dove_public_key_open(dove_public_key *key, const unsigned char *pk)
{
    expanded_public *const e = dove_alloc(sizeof *e);
    unsigned k;
    int rc = 0;

    key->owned = (unsigned char *)e;
    key->owned_len = sizeof *e;
    if (e == NULL)
        return DOVE_ERR_MEMORY;
    key->seed_pk = pk;
    key->a = e->a;
    key->p2 = e->p2;
    key->p3 = pk + DOVE_PK_P3;
    for (k = 0; k < DOVE_L && rc == 0; k++)
        rc = dove_expand_a(e->a + k * DOVE_A_BYTES, pk, k);
    return rc;
}

int dove_public_key_p2(const dove_public_key *key, unsigned i, const unsigned char **p2)
{
    expanded_public *const e = (expanded_public *)key->owned;

    *p2 = e->p2;
    return dove_expand_p2(e->p2, key->seed_pk, i);
}

#endif
