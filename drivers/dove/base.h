/*
 * The base matrices: what key generation makes of A_k and T, and what signing
 * and verification make of A_k and a vinegar vector.
 *
 * Source: [DOVE], key generation (B_k = T^t A_k, C_k = A_k T), and signing and
 * verification (x_k = v^t A_k, y_k = A_k v).
 */
#ifndef DOVE_BASE_H
#define DOVE_BASE_H

#include "matrix.h"

/*
 * c = A T and bt = (T^t A)^t = A^t T, for one base matrix.
 *
 * c, bt  v rows each, written
 * t      T, v rows
 * a      A packed upper, DOVE_A_BYTES
 */
void dove_base_products(dove_row c[DOVE_V], dove_row bt[DOVE_V], const dove_row t[DOVE_V],
                        const unsigned char *a);

/*
 * x[k] = v^t A_k and y[k] = A_k v for every k < l.
 *
 * x, y  l vectors each, written
 * a     the A_k packed upper, one after the other, l * DOVE_A_BYTES
 * v     vinegar vector
 */
void dove_base_vectors(dove_vec x[DOVE_L], dove_vec y[DOVE_L], const unsigned char *a,
                       const dove_vec *v);

/* <x[i / l], y[i mod l]>: the part of equation i that its base matrices give. */
unsigned dove_base_value(const dove_vec x[DOVE_L], const dove_vec y[DOVE_L], size_t i);

#endif
