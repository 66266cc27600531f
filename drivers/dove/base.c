/*
 * Products with the base matrices A_k; see base.h. Rows of A_k are short (row i
 * has v - i elements), which is public; their elements are only multiplied.
 */
#include "base.h"

#include <string.h>

void dove_base_products(dove_row c[DOVE_V], dove_row bt[DOVE_V], const dove_row t[DOVE_V],
                        const unsigned char *a)
{
    dove_row8 mult;
    size_t i, j;

    memset(c, 0, DOVE_V * sizeof c[0]);
    memset(bt, 0, DOVE_V * sizeof bt[0]);
    /* Row j of T meets column j of A (rows i <= j) for c, row j of A for bt. */
    for (j = 0; j < DOVE_V; j++) {
        dove_row_multiples(&mult, &t[j]);
        for (i = 0; i <= j; i++)
            dove_row_add_multiple(&c[i], a[dove_upper_index(DOVE_V, i, j)], &mult);
        for (i = j; i < DOVE_V; i++)
            dove_row_add_multiple(&bt[i], a[dove_upper_index(DOVE_V, j, i)], &mult);
    }
    dove_wipe(&mult, sizeof mult);
}

/* The same for one k; masks are those of v. */
static void base_vector(dove_vec *x, dove_vec *y, const unsigned char *a, const dove_vec *v,
                        const dove_vec8 *masks)
{
    dove_vec8 planes;
    dove_vec row;
    size_t i;

    memset(&planes, 0, sizeof planes);
    memset(y, 0, sizeof *y);
    for (i = 0; i < DOVE_V; i++) {
        dove_vec_load(&row, a + dove_upper_index(DOVE_V, i, i), i, DOVE_V - i);
        dove_vec_add_to_planes(&planes, dove_vec_at(v, i), &row);
        dove_vec_put(y, i, dove_vec_dot(masks, &row));
    }
    dove_vec_sum(x, &planes);
    dove_wipe(&planes, sizeof planes);
}

void dove_base_vectors(dove_vec x[DOVE_L], dove_vec y[DOVE_L], const unsigned char *a,
                       const dove_vec *v)
{
    dove_vec8 masks;
    size_t k;

    dove_vec_masks(&masks, v);
    for (k = 0; k < DOVE_L; k++)
        base_vector(&x[k], &y[k], a + k * DOVE_A_BYTES, v, &masks);
    dove_wipe(&masks, sizeof masks);
}

unsigned dove_base_value(const dove_vec x[DOVE_L], const dove_vec y[DOVE_L], size_t i)
{
    dove_vec8 masks;
    unsigned value;

    dove_vec_masks(&masks, &x[i / DOVE_L]);
    value = dove_vec_dot(&masks, &y[i % DOVE_L]);
    dove_wipe(&masks, sizeof masks);
    return value;
}
