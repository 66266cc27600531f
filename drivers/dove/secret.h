/*
 * The secret matrices of a key pair, ready for products.
 *
 * Source: [DOVE], key generation, steps 2 and 3.
 */
#ifndef DOVE_SECRET_H
#define DOVE_SECRET_H

#include "matrix.h"

/* T, C_k and B_k transposed. All of it is secret; some 2.5 MB in the largest set. */
typedef struct {
    dove_row t[DOVE_V];
    dove_row c[DOVE_L][DOVE_V];
    dove_row bt[DOVE_L][DOVE_V];
} dove_secret;

/* s->t = T from bytes, v x o. */
void dove_secret_load_t(dove_secret *s, const unsigned char *bytes);

/* s->c[k], s->bt[k] = C_k, B_k^t from s->t and A_k (packed upper, DOVE_A_BYTES). */
void dove_secret_derive(dove_secret *s, unsigned k, const unsigned char *a);

/* s->c[k], s->bt[k] from the bytes of B_k (o x v) and C_k (v x o). */
void dove_secret_load(dove_secret *s, unsigned k, const unsigned char *b, const unsigned char *c);

/* Stores T as bytes, v x o. */
void dove_secret_store_t(unsigned char *bytes, const dove_secret *s);

/* Stores B_k (o x v) and C_k (v x o) as bytes. */
void dove_secret_store(unsigned char *b, unsigned char *c, const dove_secret *s, unsigned k);

#endif
