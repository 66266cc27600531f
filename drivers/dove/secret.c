/*
 * The secret matrices, between the bytes of a key and rows; see secret.h.
 */
#include "secret.h"

#include <string.h>

#include "base.h"
#include "debug.h"

static void load_rows(dove_row m[DOVE_V], const unsigned char *bytes)
{
    size_t j;

    for (j = 0; j < DOVE_V; j++)
        dove_row_load(&m[j], bytes + j * DOVE_O, 0, DOVE_O);
}

static void store_rows(unsigned char *bytes, const dove_row m[DOVE_V])
{
    size_t j;

    for (j = 0; j < DOVE_V; j++)
        dove_row_store(bytes + j * DOVE_O, &m[j]);
}

void dove_secret_load_t(dove_secret *s, const unsigned char *bytes)
{
    load_rows(s->t, bytes);
}

void dove_secret_store_t(unsigned char *bytes, const dove_secret *s)
{
    store_rows(bytes, s->t);
}

void dove_secret_derive(dove_secret *s, unsigned k, const unsigned char *a)
{
    DOVE_ASSERT(k < DOVE_L);
    dove_base_products(s->c[k], s->bt[k], s->t, a);
}

void dove_secret_load(dove_secret *s, unsigned k, const unsigned char *b, const unsigned char *c)
{
    size_t i, j;

    DOVE_ASSERT(k < DOVE_L);
    load_rows(s->c[k], c);
    memset(s->bt[k], 0, sizeof s->bt[k]);
    for (i = 0; i < DOVE_O; i++)
        for (j = 0; j < DOVE_V; j++)
            dove_row_put(&s->bt[k][j], i, b[i * DOVE_V + j]);
}

void dove_secret_store(unsigned char *b, unsigned char *c, const dove_secret *s, unsigned k)
{
    size_t i, j;

    DOVE_ASSERT(k < DOVE_L);
    store_rows(c, s->c[k]);
    for (i = 0; i < DOVE_O; i++)
        for (j = 0; j < DOVE_V; j++)
            b[i * DOVE_V + j] = (unsigned char)dove_row_at(&s->bt[k][j], i); /* below 256 */
}
