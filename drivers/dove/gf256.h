/*
 * Arithmetic in GF(2^8) = GF(2)[x] / (x^8 + x^4 + x^3 + x + 1), on single bytes
 * and on vectors of bytes held in 64-bit words, eight elements a word.
 *
 * Everything runs in constant time: no table, no branch and no index depends on
 * an element. A word is an array of eight independent bytes, filled and read by
 * memcpy, and no operation moves bits from one byte to another, so the machine's
 * byte order does not matter.
 *
 * There are three ways to multiply many bytes at once:
 *   multiples  x^b * row for the eight b, made once for a row; then each product
 *              c * row is the XOR of the multiples that the bits of c select;
 *   planes     for a sum of products c_j * row_j the rows are first added into
 *              eight planes, plane b taking the rows whose c_j has bit b set;
 *              the sum of x^b * plane_b is formed once, at the end;
 *   masks      for scalar products with one vector, its bits are spread to byte
 *              masks once; then a product is ANDs, XORs and one such sum.
 * The first suits one row and many factors, the second one sum of many rows, the
 * third one vector and many rows.
 *
 * The functions on vectors are inline, and their callers pass a constant number
 * of words: a loop of known length is one that a compiler turns into vector
 * instructions. Buffers never overlap.
 *
 * Source: [DOVE], field of the scheme (reduction polynomial 0x11b).
 */
#ifndef DOVE_GF256_H
#define DOVE_GF256_H

#include <stddef.h>
#include <stdint.h>

#include "ct.h"

/* 64-bit words for n bytes: an even number, so that pairs fit 128-bit registers. */
#define DOVE_WORDS(n) (2 * (((n) + 15) / 16))

#define DOVE_LOW_BITS UINT64_C(0x0101010101010101) /* bit 0 of each byte */

/* a * b; a and b below 256. */
unsigned dove_gf_mul(unsigned a, unsigned b);

/* 1 / a, and 0 for a = 0; a below 256. */
unsigned dove_gf_inv(unsigned a);

/* x * e for each of the eight elements e of a word: a shift in each byte, then
 * 0x1b = 0x11b - 0x100 (written as its bits 4, 3, 1, 0) where bit 7 went out. */
static inline uint64_t dove_gf_times_x(uint64_t word)
{
    const uint64_t out = word >> 7 & DOVE_LOW_BITS;

    return (word & ~(DOVE_LOW_BITS << 7)) << 1 ^ out << 4 ^ out << 3 ^ out << 1 ^ out;
}

/* mult[b * words + w] = x^b * row[w] for b < 8. */
static inline void dove_gf_multiples(uint64_t *restrict mult, const uint64_t *restrict row,
                                     size_t words)
{
    size_t b, w;

    for (w = 0; w < words; w++)
        mult[w] = row[w];
    for (b = 1; b < 8; b++)
        for (w = 0; w < words; w++)
            mult[b * words + w] = dove_gf_times_x(mult[(b - 1) * words + w]);
}

/* dst += c * row, where mult is what dove_gf_multiples made of row; c below 256. */
static inline void dove_gf_add_multiple(uint64_t *restrict dst, unsigned c,
                                        const uint64_t *restrict mult, size_t words)
{
    uint64_t m[8];
    size_t b, w;

    for (b = 0; b < 8; b++)
        m[b] = dove_ct_bit_mask(c, (unsigned)b);
    for (w = 0; w < words; w++)
        dst[w] ^= (m[0] & mult[w]) ^ (m[1] & mult[words + w]) ^ (m[2] & mult[2 * words + w]) ^
                  (m[3] & mult[3 * words + w]) ^ (m[4] & mult[4 * words + w]) ^
                  (m[5] & mult[5 * words + w]) ^ (m[6] & mult[6 * words + w]) ^
                  (m[7] & mult[7 * words + w]);
}

/* planes[b * words + w] += row[w] for each b < 8 that is set in c; c below 256. */
static inline void dove_gf_add_to_planes(uint64_t *restrict planes, unsigned c,
                                         const uint64_t *restrict row, size_t words)
{
    size_t b, w;

    for (b = 0; b < 8; b++) {
        const uint64_t m = dove_ct_bit_mask(c, (unsigned)b);

        for (w = 0; w < words; w++)
            planes[b * words + w] ^= m & row[w];
    }
}

/* sum[w] = sum over b of x^b * planes[b * words + w], by Horner's rule. */
static inline void dove_gf_sum_planes(uint64_t *restrict sum, const uint64_t *restrict planes,
                                      size_t words)
{
    size_t b, w;

    for (w = 0; w < words; w++)
        sum[w] = planes[7 * words + w];
    for (b = 7; b-- > 0;)
        for (w = 0; w < words; w++)
            sum[w] = dove_gf_times_x(sum[w]) ^ planes[b * words + w];
}

/* Each byte of masks[b * words + w] is 255 where bit b of that of vec[w] is set, else 0. */
static inline void dove_gf_masks(uint64_t *restrict masks, const uint64_t *restrict vec,
                                 size_t words)
{
    size_t b, w;

    for (b = 0; b < 8; b++)
        for (w = 0; w < words; w++)
            masks[b * words + w] = (vec[w] >> b & DOVE_LOW_BITS) * 0xff;
}

/* The scalar product <row, vec>, where masks is what dove_gf_masks made of vec. */
static inline unsigned dove_gf_dot(const uint64_t *restrict masks, const uint64_t *restrict row,
                                   size_t words)
{
    uint64_t sum = 0;
    size_t b, w;

    for (b = 8; b-- > 0;) {
        uint64_t plane = 0;

        for (w = 0; w < words; w++)
            plane ^= masks[b * words + w] & row[w];
        sum = dove_gf_times_x(sum) ^ plane;
    }
    /* The eight bytes of the word are eight partial sums. */
    sum ^= sum >> 32;
    sum ^= sum >> 16;
    sum ^= sum >> 8;
    return (unsigned)(sum & 0xff);
}

#endif
