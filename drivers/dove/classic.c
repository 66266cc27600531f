/*
 * The expanded variant, classic: a key holds every matrix that its operation
 * needs; see variant.h.
 *
 *   pk = seed_pk || A_k, k < l || P_i2, i < m || P_i3, i < m
 *   sk = seed_sk || seed_pk || T || A_k || B_k || C_k || P_i2
 */
#include "variant.h"

#ifdef DOVE_CLASSIC

#include <string.h>

#include "ct.h"
#include "expand.h"

/* A_k in both keys, B_k and C_k in the secret key. */
static int store_base(unsigned char *pk, unsigned char *sk, dove_keygen_work *work, unsigned k)
{
    unsigned char *const a = pk + DOVE_PK_A + k * DOVE_A_BYTES;
    const int rc = dove_expand_a(a, work->seed_pk, k);

    if (rc != 0)
        return rc;
    memcpy(sk + DOVE_SK_A + k * DOVE_A_BYTES, a, DOVE_A_BYTES);
    dove_secret_derive(&work->secret, k, a);
    dove_secret_store(sk + DOVE_SK_B + k * DOVE_B_BYTES, sk + DOVE_SK_C + k * DOVE_C_BYTES,
                      &work->secret, k);
    return 0;
}

/*
 * P_i2 in both keys, P_i3 in the public key. P_i2 is expanded three times, where
 * once would do, because the submission does so: the calls of pseudoXOF, and
 * with them the profile of a key generation, are part of what is compared.
 */
static int store_equation(unsigned char *pk, unsigned char *sk, dove_keygen_work *work, unsigned i)
{
    int rc = dove_expand_p2(pk + DOVE_PK_P2 + i * DOVE_P2_BYTES, work->seed_pk, i);

    if (rc == 0)
        rc = dove_expand_p2(work->bytes, work->seed_pk, i);
    if (rc != 0)
        return rc;
    dove_keygen_p3(pk + DOVE_PK_P3 + i * DOVE_P3_BYTES, work, i, work->bytes);
    return dove_expand_p2(sk + DOVE_SK_P2 + i * DOVE_P2_BYTES, work->seed_pk, i);
}

int dove_variant_keygen(unsigned char *pk, unsigned char *sk, dove_keygen_work *work)
{
    unsigned k, i;
    int rc = 0;

    memcpy(pk, work->seed_pk, DOVE_SEED_PK);
    memcpy(sk, work->seed_sk, DOVE_SEED_SK);
    memcpy(sk + DOVE_SK_SEED_PK, work->seed_pk, DOVE_SEED_PK);
    dove_secret_store_t(sk + DOVE_SK_T, &work->secret);
    for (k = 0; k < DOVE_L && rc == 0; k++)
        rc = store_base(pk, sk, work, k);
    for (i = 0; i < DOVE_O && rc == 0; i++)
        rc = store_equation(pk, sk, work, i);
    return rc;
}

int dove_signing_key_open(dove_signing_key *key, const unsigned char *sk)
{
    unsigned k;

    key->owned = NULL;
    key->owned_len = 0;
    key->secret = dove_alloc(sizeof *key->secret);
    if (key->secret == NULL)
        return DOVE_ERR_MEMORY;
    key->seed_sk = sk;
    key->seed_pk = sk + DOVE_SK_SEED_PK;
    key->a = sk + DOVE_SK_A;
    key->p2 = sk + DOVE_SK_P2;
    dove_secret_load_t(key->secret, sk + DOVE_SK_T);
    for (k = 0; k < DOVE_L; k++)
        dove_secret_load(key->secret, k, sk + DOVE_SK_B + k * DOVE_B_BYTES,
                         sk + DOVE_SK_C + k * DOVE_C_BYTES);
    return 0;
}

int dove_public_key_open(dove_public_key *key, const unsigned char *pk)
{
    key->owned = NULL;
    key->owned_len = 0;
    key->seed_pk = pk;
    key->a = pk + DOVE_PK_A;
    key->p2 = pk + DOVE_PK_P2;
    key->p3 = pk + DOVE_PK_P3;
    return 0;
}

int dove_public_key_p2(const dove_public_key *key, unsigned i, const unsigned char **p2)
{
    *p2 = key->p2 + i * DOVE_P2_BYTES;
    return 0;
}

#endif
