/*
 * Rows and vectors of the two lengths that DOVE has, and the steps that matrix
 * products are made of.
 *
 * Every matrix that meets another one is kept as rows of o elements: T, C_k and
 * P_i2 are v x o by nature, and B_k is held transposed. So the inner loops all
 * have one constant length. Packed matrices stay bytes and are loaded row by row.
 * Elements beyond the end of a row are zero.
 *
 * Source: [DOVE], notation.
 */
#ifndef DOVE_MATRIX_H
#define DOVE_MATRIX_H

#include <stddef.h>
#include <stdint.h>

#include "gf256.h"
#include "params.h"

#define DOVE_ROW_WORDS DOVE_WORDS(DOVE_O)
#define DOVE_VEC_WORDS DOVE_WORDS(DOVE_V)

/* A row has o elements, a vector v; the eightfold ones hold planes, multiples or
 * masks (gf256.h) of one of them. */
typedef struct {
    uint64_t w[DOVE_ROW_WORDS];
} dove_row;
typedef struct {
    uint64_t w[8 * DOVE_ROW_WORDS];
} dove_row8;
typedef struct {
    uint64_t w[DOVE_VEC_WORDS];
} dove_vec;
typedef struct {
    uint64_t w[8 * DOVE_VEC_WORDS];
} dove_vec8;

/* Element i of a row, i < o; i is public, as in the three functions below. */
static inline unsigned dove_row_at(const dove_row *row, size_t i)
{
    return ((const unsigned char *)row->w)[i];
}

/* Element i of a vector, i < v. */
static inline unsigned dove_vec_at(const dove_vec *vec, size_t i)
{
    return ((const unsigned char *)vec->w)[i];
}

/* Sets element i of a row, i < o, to c, below 256. */
static inline void dove_row_put(dove_row *row, size_t i, unsigned c)
{
    ((unsigned char *)row->w)[i] = (unsigned char)c;
}

/* Sets element i of a vector, i < v, to c, below 256. */
static inline void dove_vec_put(dove_vec *vec, size_t i, unsigned c)
{
    ((unsigned char *)vec->w)[i] = (unsigned char)c;
}

/* Where element (i,j) of a packed upper n x n matrix lies; i <= j < n. The rows
 * before row i hold n + (n - 1) + ... + (n - i + 1) elements. */
static inline size_t dove_upper_index(size_t n, size_t i, size_t j)
{
    return i * (2 * n - i + 1) / 2 + (j - i);
}

/* Loads n elements into a row, at position `at` (at + n <= o), zeros elsewhere. */
void dove_row_load(dove_row *row, const unsigned char *bytes, size_t at, size_t n);

/* Loads n elements into a vector, at position `at` (at + n <= v), zeros elsewhere. */
void dove_vec_load(dove_vec *vec, const unsigned char *bytes, size_t at, size_t n);

/* Stores the o elements of a row. */
void dove_row_store(unsigned char *bytes, const dove_row *row);

/* mult = the multiples x^b * row. */
void dove_row_multiples(dove_row8 *mult, const dove_row *row);

/* dst += c * row, by the multiples of row; c below 256. */
void dove_row_add_multiple(dove_row *dst, unsigned c, const dove_row8 *mult);

/* acc[i] += left[i] * right for i < o: a column times a row, added to o rows. */
void dove_add_outer(dove_row acc[DOVE_O], const dove_row *left, const dove_row *right);

/* planes += c * row, to be summed by dove_row_sum; c below 256. */
void dove_row_add_to_planes(dove_row8 *planes, unsigned c, const dove_row *row);

/* sum = what the planes stand for. */
void dove_row_sum(dove_row *sum, const dove_row8 *planes);

/* planes += vec^t M for the v rows of M. */
void dove_add_product(dove_row8 *planes, const dove_vec *vec, const dove_row m[DOVE_V]);

/* planes += vec^t M for M in bytes, v x o. */
void dove_add_product_bytes(dove_row8 *planes, const dove_vec *vec, const unsigned char *m);

/* masks = byte masks of a row, for dove_row_dot. */
void dove_row_masks(dove_row8 *masks, const dove_row *row);

/* <row, r>, by the masks of r. */
unsigned dove_row_dot(const dove_row8 *masks, const dove_row *row);

/* The same four for vectors. */
void dove_vec_add_to_planes(dove_vec8 *planes, unsigned c, const dove_vec *vec);
void dove_vec_sum(dove_vec *sum, const dove_vec8 *planes);
void dove_vec_masks(dove_vec8 *masks, const dove_vec *vec);
unsigned dove_vec_dot(const dove_vec8 *masks, const dove_vec *vec);

#endif
