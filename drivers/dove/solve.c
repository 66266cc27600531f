/*
 * Constant-time Gauss-Jordan elimination; see solve.h.
 *
 * Two things replace the branches of the textbook. Instead of searching a pivot
 * and swapping rows, each row below is added to the pivot's row as long as the
 * pivot is zero, by a mask. And a pivot that stays zero does not end the
 * elimination: it only clears the result, so that a singular L takes the same
 * time whichever column shows it.
 */
#include "solve.h"

#include <string.h>

/* Rows and right-hand side of the system, and the multiples of the pivot's row. */
typedef struct {
    dove_row *l;
    unsigned char *b;
    dove_row8 mult;
} elimination;

/* Makes the pivot (c,c) nonzero if any row below can; returns the pivot. */
static unsigned raise_pivot(elimination *s, size_t c)
{
    size_t r, w;

    for (r = c + 1; r < DOVE_O; r++) {
        const uint64_t mask = dove_ct_zero_mask(dove_row_at(&s->l[c], c));

        for (w = 0; w < DOVE_ROW_WORDS; w++)
            s->l[c].w[w] ^= mask & s->l[r].w[w];
        s->b[c] = (unsigned char)(s->b[c] ^ (mask & s->b[r]));
    }
    return dove_row_at(&s->l[c], c);
}

/* Row c times f, with the right-hand side; leaves the multiples of the new row. */
static void scale_row(elimination *s, size_t c, unsigned f)
{
    dove_row_multiples(&s->mult, &s->l[c]);
    memset(&s->l[c], 0, sizeof s->l[c]);
    dove_row_add_multiple(&s->l[c], f, &s->mult);
    s->b[c] = (unsigned char)dove_gf_mul(f, s->b[c]); /* an element is below 256 */
    dove_row_multiples(&s->mult, &s->l[c]);
}

/* Clears column c in every other row; the pivot is 1. */
static void clear_column(elimination *s, size_t c)
{
    size_t r;

    for (r = 0; r < DOVE_O; r++) {
        const unsigned f = dove_row_at(&s->l[r], c);

        if (r == c)
            continue;
        dove_row_add_multiple(&s->l[r], f, &s->mult);
        s->b[r] = (unsigned char)(s->b[r] ^ dove_gf_mul(f, s->b[c]));
    }
}

unsigned dove_solve(dove_row l[DOVE_O], unsigned char b[DOVE_O])
{
    elimination s;
    uint64_t singular = 0;
    size_t c;

    s.l = l;
    s.b = b;
    for (c = 0; c < DOVE_O; c++) {
        const unsigned pivot = raise_pivot(&s, c);

        singular |= dove_ct_zero_mask(pivot);
        scale_row(&s, c, dove_gf_inv(pivot));
        clear_column(&s, c);
    }
    dove_wipe(&s, sizeof s);
    return (unsigned)(~singular & 1);
}
