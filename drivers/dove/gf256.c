/*
 * GF(2^8) on single bytes; see gf256.h. Used where a product of two elements
 * stands alone (the right-hand side of the linear system), not in bulk.
 */
#include "gf256.h"

unsigned dove_gf_mul(unsigned a, unsigned b)
{
    unsigned product = 0, bit;

    for (bit = 0; bit < 8; bit++) {
        product ^= a & (unsigned)(dove_ct_bit_mask(b, bit) & 0xff);
        a = a << 1 ^ (0x11bu & (unsigned)(dove_ct_bit_mask(a, 7) & 0x1ff));
    }
    return product;
}

unsigned dove_gf_inv(unsigned a)
{
    /* a^254 = a^(2 + 4 + ... + 128): the group has order 255, and 0 stays 0. */
    unsigned square = a, inverse = 1, i;

    for (i = 0; i < 7; i++) {
        square = dove_gf_mul(square, square);
        inverse = dove_gf_mul(inverse, square);
    }
    return inverse;
}
