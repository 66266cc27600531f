/*
 * Key generation, as far as the variants share it; see keygen.h.
 */
#include "keygen.h"

#include <string.h>

#include "ct.h"
#include "debug.h"
#include "drng.h"
#include "expand.h"
#include "variant.h"

#if DOVE_A_BYTES > DOVE_SECRET_BYTES || DOVE_P2_BYTES > DOVE_SECRET_BYTES
#error "dove_keygen_work.bytes must hold any output of XOF"
#endif

/* Steps 1 and 2: the secret seed, and what it expands to. */
static int draw_secret(dove_keygen_work *work)
{
    int rc;

    if (get_random_number(&drng_algorithm, work->seed_sk, 8 * DOVE_SEED_SK) != 0)
        return DOVE_ERR_RANDOM;
    rc = dove_expand_secret(work->bytes, work->seed_sk);
    if (rc != 0)
        return rc;
    memcpy(work->seed_pk, work->bytes, DOVE_SEED_PK);
    dove_secret_load_t(&work->secret, work->bytes + DOVE_SEED_PK);
    /* Secret becomes public: seed_pk opens the public key. It is output of a
     * one-way function of seed_sk, beside T but in other bytes of that output. */
    DOVE_DECLASSIFY(work->seed_pk, DOVE_SEED_PK);
    return 0;
}

int dove_keygen(unsigned char *pk, unsigned char *sk)
{
    dove_keygen_work *const work = dove_alloc(sizeof *work);
    int rc;

    if (work == NULL)
        return DOVE_ERR_MEMORY;
    rc = draw_secret(work);
    if (rc == 0)
        rc = dove_variant_keygen(pk, sk, work);
    dove_free(work, sizeof *work);
    return rc;
}

/* out = Upper(m), packed: each element below the diagonal joins its mirror image. */
static void pack_upper(unsigned char *out, const dove_row m[DOVE_O])
{
    size_t i, j;

    for (i = 0; i < DOVE_O; i++) {
        *out++ = (unsigned char)dove_row_at(&m[i], i);
        for (j = i + 1; j < DOVE_O; j++)
            *out++ = (unsigned char)(dove_row_at(&m[i], j) ^ dove_row_at(&m[j], i));
    }
}

void dove_keygen_p3(unsigned char *out, dove_keygen_work *work, unsigned i,
                    const unsigned char *p2)
{
    const dove_secret *const s = &work->secret;
    dove_row row;
    size_t j;

    DOVE_ASSERT(i < DOVE_O);
    memset(work->p3, 0, sizeof work->p3);
    for (j = 0; j < DOVE_V; j++) {
        dove_add_outer(work->p3, &s->bt[i / DOVE_L][j], &s->c[i % DOVE_L][j]);
        dove_row_load(&row, p2 + j * DOVE_O, 0, DOVE_O);
        dove_add_outer(work->p3, &s->t[j], &row);
    }
    pack_upper(out, work->p3);
    /* Secret becomes public: P_i3 is the public key. That T cannot be found from
     * it is the assumption on which the scheme rests. */
    DOVE_DECLASSIFY(out, DOVE_P3_BYTES);
}
