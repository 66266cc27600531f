/*
 * Rows, vectors and the steps of matrix products; see matrix.h. The functions
 * are short on purpose: each gives a loop of gf256.h its constant length.
 */
#include "matrix.h"

#include <string.h>

#include "debug.h"

void dove_row_load(dove_row *row, const unsigned char *bytes, size_t at, size_t n)
{
    DOVE_ASSERT(at <= DOVE_O && n <= DOVE_O - at);
    memset(row, 0, sizeof *row);
    memcpy((unsigned char *)row->w + at, bytes, n);
}

void dove_vec_load(dove_vec *vec, const unsigned char *bytes, size_t at, size_t n)
{
    DOVE_ASSERT(at <= DOVE_V && n <= DOVE_V - at);
    memset(vec, 0, sizeof *vec);
    memcpy((unsigned char *)vec->w + at, bytes, n);
}

void dove_row_store(unsigned char *bytes, const dove_row *row)
{
    memcpy(bytes, row->w, DOVE_O);
}

void dove_row_multiples(dove_row8 *mult, const dove_row *row)
{
    dove_gf_multiples(mult->w, row->w, DOVE_ROW_WORDS);
}

void dove_row_add_multiple(dove_row *dst, unsigned c, const dove_row8 *mult)
{
    dove_gf_add_multiple(dst->w, c, mult->w, DOVE_ROW_WORDS);
}

void dove_add_outer(dove_row acc[DOVE_O], const dove_row *left, const dove_row *right)
{
    dove_row8 mult;
    size_t i;

    dove_row_multiples(&mult, right);
    for (i = 0; i < DOVE_O; i++)
        dove_row_add_multiple(&acc[i], dove_row_at(left, i), &mult);
    dove_wipe(&mult, sizeof mult);
}

void dove_row_add_to_planes(dove_row8 *planes, unsigned c, const dove_row *row)
{
    dove_gf_add_to_planes(planes->w, c, row->w, DOVE_ROW_WORDS);
}

void dove_row_sum(dove_row *sum, const dove_row8 *planes)
{
    dove_gf_sum_planes(sum->w, planes->w, DOVE_ROW_WORDS);
}

void dove_add_product(dove_row8 *planes, const dove_vec *vec, const dove_row m[DOVE_V])
{
    size_t j;

    for (j = 0; j < DOVE_V; j++)
        dove_row_add_to_planes(planes, dove_vec_at(vec, j), &m[j]);
}

void dove_add_product_bytes(dove_row8 *planes, const dove_vec *vec, const unsigned char *m)
{
    dove_row row;
    size_t j;

    for (j = 0; j < DOVE_V; j++) {
        dove_row_load(&row, m + j * DOVE_O, 0, DOVE_O);
        dove_row_add_to_planes(planes, dove_vec_at(vec, j), &row);
    }
}

void dove_row_masks(dove_row8 *masks, const dove_row *row)
{
    dove_gf_masks(masks->w, row->w, DOVE_ROW_WORDS);
}

unsigned dove_row_dot(const dove_row8 *masks, const dove_row *row)
{
    return dove_gf_dot(masks->w, row->w, DOVE_ROW_WORDS);
}

void dove_vec_add_to_planes(dove_vec8 *planes, unsigned c, const dove_vec *vec)
{
    dove_gf_add_to_planes(planes->w, c, vec->w, DOVE_VEC_WORDS);
}

void dove_vec_sum(dove_vec *sum, const dove_vec8 *planes)
{
    dove_gf_sum_planes(sum->w, planes->w, DOVE_VEC_WORDS);
}

void dove_vec_masks(dove_vec8 *masks, const dove_vec *vec)
{
    dove_gf_masks(masks->w, vec->w, DOVE_VEC_WORDS);
}

unsigned dove_vec_dot(const dove_vec8 *masks, const dove_vec *vec)
{
    return dove_gf_dot(masks->w, vec->w, DOVE_VEC_WORDS);
}
