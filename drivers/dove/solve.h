/*
 * The linear system of a signature, L z = b, solved in constant time.
 *
 * Source: [DOVE], signing, step 2.
 */
#ifndef DOVE_SOLVE_H
#define DOVE_SOLVE_H

#include "matrix.h"

/*
 * Solves L z = b by Gauss-Jordan elimination; always o steps, whatever L is.
 *
 * l  the o rows of L; destroyed
 * b  right-hand side, o elements; becomes z when L is invertible
 *
 * Returns 1 when L is invertible, else 0 (b is then meaningless). The result is
 * as secret as L: a caller who branches on it declassifies it first.
 */
unsigned dove_solve(dove_row l[DOVE_O], unsigned char b[DOVE_O]);

#endif
