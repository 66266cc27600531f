/*
 * Signing; see sign.h.
 */
#include "sign.h"

#include <string.h>

#include "base.h"
#include "ct.h"
#include "expand.h"
#include "solve.h"
#include "variant.h"

unsigned long long dove_rejected_draws = 0;

#define DRAW_INPUT (DOVE_O + DOVE_SEED_SK) /* t || seed_sk, without the counter */

/* A signature in progress; secret but for t. */
typedef struct {
    unsigned char t[DOVE_O];
    unsigned char draw[DRAW_INPUT + 2]; /* t || seed_sk || LE16(ctr) */
    unsigned char vinegar[DOVE_V];
    unsigned char z[DOVE_O]; /* right-hand side t + w, then the solution */
    dove_vec v;
    dove_vec x[DOVE_L];
    dove_vec y[DOVE_L];
    dove_row8 planes;
    dove_row l[DOVE_O];
} sign_work;

/* Step 1: t, and the salt = XOF(seed_sk || t), straight into the signature. */
static int start(sign_work *s, unsigned char *sn, const dove_signing_key *key,
                 const unsigned char *m, unsigned long long m_len)
{
    unsigned char in[DOVE_SEED_SK + DOVE_O];
    int rc = dove_hash_message(s->t, m, m_len, key->seed_pk);

    if (rc != 0)
        return rc;
    memcpy(in, key->seed_sk, DOVE_SEED_SK);
    memcpy(in + DOVE_SEED_SK, s->t, DOVE_O);
    rc = dove_xof(sn + DOVE_V + DOVE_O, DOVE_SALT, in, sizeof in);
    dove_wipe(in, sizeof in);
    memcpy(s->draw, s->t, DOVE_O);
    memcpy(s->draw + DOVE_O, key->seed_sk, DOVE_SEED_SK);
    return rc;
}

/* Step 2: vinegar number ctr, below 2^16, and its products with the A_k. */
static int draw_vinegar(sign_work *s, const dove_signing_key *key, unsigned ctr)
{
    int rc;

    s->draw[DRAW_INPUT] = (unsigned char)(ctr & 0xff);
    s->draw[DRAW_INPUT + 1] = (unsigned char)(ctr >> 8);
    rc = dove_xof(s->vinegar, DOVE_V, s->draw, sizeof s->draw);
    if (rc != 0)
        return rc;
    dove_vec_load(&s->v, s->vinegar, 0, DOVE_V);
    dove_base_vectors(s->x, s->y, key->a, &s->v);
    return 0;
}

/* Step 2: L and t + w. With k1 = i / l and k2 = i mod l, row i of L is
 * v^t P_i2 + x_k1^t C_k2 + y_k2^t B_k1^t: one sum, in one set of planes. */
static void build_system(sign_work *s, const dove_signing_key *key)
{
    size_t i;

    for (i = 0; i < DOVE_O; i++) {
        const size_t k1 = i / DOVE_L, k2 = i % DOVE_L;

        memset(&s->planes, 0, sizeof s->planes);
        dove_add_product_bytes(&s->planes, &s->v, key->p2 + i * DOVE_P2_BYTES);
        dove_add_product(&s->planes, &s->x[k1], key->secret->c[k2]);
        dove_add_product(&s->planes, &s->y[k2], key->secret->bt[k1]);
        dove_row_sum(&s->l[i], &s->planes);
        s->z[i] = (unsigned char)(s->t[i] ^ dove_base_value(s->x, s->y, i)); /* below 256 */
    }
}

/* Step 2: draws until L is invertible; then s->z is the solution. */
static int find_solution(sign_work *s, const dove_signing_key *key)
{
    unsigned ctr, invertible;

    for (ctr = 0; ctr < DOVE_DRAWS; ctr++) {
        const int rc = draw_vinegar(s, key, ctr);

        if (rc != 0)
            return rc;
        build_system(s, key);
        invertible = dove_solve(s->l, s->z);
        /* Secret becomes public: whether L is invertible. The loop is the
         * algorithm's, and its length shows in the time; sign.h argues why the
         * count of rejected draws tells nothing usable about the key. */
        DOVE_DECLASSIFY(&invertible, sizeof invertible);
        if (invertible)
            return 0;
        dove_rejected_draws++;
    }
    return DOVE_ERR_DRAWS;
}

/* sn = (v + T z) || z; the salt is there already. */
static void finish(sign_work *s, unsigned char *sn, const dove_secret *secret)
{
    dove_row z;
    size_t j;

    dove_row_load(&z, s->z, 0, DOVE_O);
    dove_row_masks(&s->planes, &z);
    for (j = 0; j < DOVE_V; j++)
        sn[j] = (unsigned char)(s->vinegar[j] ^ dove_row_dot(&s->planes, &secret->t[j]));
    memcpy(sn + DOVE_V, s->z, DOVE_O);
    dove_wipe(&z, sizeof z);
    /* Secret becomes public: the signature, whose purpose it is. v hides T z, and
     * the salt is output of XOF on secret input. */
    DOVE_DECLASSIFY(sn, DOVE_SIG_BYTES);
}

int dove_sign(unsigned char *sn, const unsigned char *sk, const unsigned char *m,
              unsigned long long m_len)
{
    sign_work *const s = dove_alloc(sizeof *s);
    dove_signing_key key;
    int rc = dove_signing_key_open(&key, sk);

    if (rc == 0)
        rc = s == NULL ? DOVE_ERR_MEMORY : start(s, sn, &key, m, m_len);
    if (rc == 0)
        rc = find_solution(s, &key);
    if (rc == 0)
        finish(s, sn, key.secret);
    dove_signing_key_close(&key);
    dove_free(s, sizeof *s);
    return rc;
}
