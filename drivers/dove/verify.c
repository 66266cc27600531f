/*
 * Verification; see verify.h. It uses the constant-time products of signing: the
 * input is public and would allow tables, but one way of multiplying is enough.
 */
#include "verify.h"

#include <string.h>

#include "base.h"
#include "expand.h"
#include "variant.h"

/* A verification in progress. */
typedef struct {
    unsigned char t[DOVE_O]; /* what the signature must give */
    unsigned char w[DOVE_O]; /* what it gives */
    dove_vec v;
    dove_row z;
    dove_row8 z_masks;
    dove_vec x[DOVE_L];
    dove_vec y[DOVE_L];
} verify_work;

/* Splits the signature, and forms what all equations share. */
static void start(verify_work *s, const dove_public_key *key, const unsigned char *sn)
{
    dove_vec_load(&s->v, sn, 0, DOVE_V);
    dove_row_load(&s->z, sn + DOVE_V, 0, DOVE_O);
    dove_row_masks(&s->z_masks, &s->z);
    dove_base_vectors(s->x, s->y, key->a, &s->v);
}

/* planes += z^t P for a packed upper P. */
static void add_upper_product(dove_row8 *planes, const dove_row *z, const unsigned char *p)
{
    dove_row row;
    size_t r;

    for (r = 0; r < DOVE_O; r++) {
        dove_row_load(&row, p + dove_upper_index(DOVE_O, r, r), r, DOVE_O - r);
        dove_row_add_to_planes(planes, dove_row_at(z, r), &row);
    }
}

/* w[i] = <x_k1, y_k2> + <v^t P_i2 + z^t P_i3, z>. */
static void evaluate(verify_work *s, size_t i, const unsigned char *p2, const unsigned char *p3)
{
    dove_row8 planes;
    dove_row sum;

    memset(&planes, 0, sizeof planes);
    dove_add_product_bytes(&planes, &s->v, p2);
    add_upper_product(&planes, &s->z, p3);
    dove_row_sum(&sum, &planes);
    s->w[i] = (unsigned char)(dove_base_value(s->x, s->y, i) ^ dove_row_dot(&s->z_masks, &sum));
}

static int evaluate_all(verify_work *s, const dove_public_key *key)
{
    const unsigned char *p2;
    unsigned i;
    int rc = 0;

    for (i = 0; i < DOVE_O && rc == 0; i++) {
        rc = dove_public_key_p2(key, i, &p2);
        if (rc == 0)
            evaluate(s, i, p2, key->p3 + i * DOVE_P3_BYTES);
    }
    return rc;
}

int dove_verify(const unsigned char *pk, const unsigned char *sn, const unsigned char *m,
                unsigned long long m_len)
{
    verify_work *const s = dove_alloc(sizeof *s);
    dove_public_key key;
    int rc = dove_public_key_open(&key, pk);

    if (rc == 0)
        rc = s == NULL ? DOVE_ERR_MEMORY : dove_hash_message(s->t, m, m_len, key.seed_pk);
    if (rc == 0) {
        start(s, &key, sn);
        rc = evaluate_all(s, &key);
    }
    if (rc == 0 && memcmp(s->t, s->w, DOVE_O) != 0)
        rc = DOVE_ERR_INVALID;
    dove_public_key_close(&key);
    dove_free(s, sizeof *s);
    return rc;
}
