/*
 * Everything that DOVE takes from the programme's helpers: XOF, and what the
 * seeds and a message expand to.
 *
 * Source: [DOVE]: XOF(x, n) is pseudoXOF with n bytes of output, XOF(x, c, n) is
 * XOF(x || LE16(c), n). Each function here makes exactly one call of pseudoXOF.
 */
#ifndef DOVE_EXPAND_H
#define DOVE_EXPAND_H

#include <stddef.h>

#include "params.h"

/*
 * out = XOF(in, out_len).
 *
 * out  out_len bytes, written; zeroed on error
 * in   in_len bytes; no overlap with out
 *
 * Returns 0 or DOVE_ERR_XOF.
 */
int dove_xof(unsigned char *out, size_t out_len, const unsigned char *in, size_t in_len);

/* out = A_k, packed upper, DOVE_A_BYTES, for k < l. Returns 0 or DOVE_ERR_XOF. */
int dove_expand_a(unsigned char *out, const unsigned char seed_pk[DOVE_SEED_PK], unsigned k);

/* out = P_i2, DOVE_P2_BYTES, for i < m. Returns 0 or DOVE_ERR_XOF. */
int dove_expand_p2(unsigned char *out, const unsigned char seed_pk[DOVE_SEED_PK], unsigned i);

/* out = seed_pk || T, DOVE_SECRET_BYTES. Returns 0 or DOVE_ERR_XOF. */
int dove_expand_secret(unsigned char *out, const unsigned char seed_sk[DOVE_SEED_SK]);

/*
 * t = XOF(m || seed_pk, o): the digest that a signature must meet.
 *
 * t         DOVE_O bytes, written; zeroed on error
 * m, m_len  message; m may be NULL when m_len is 0
 *
 * Returns 0; DOVE_ERR_ARGUMENT when the length in bits or the copy's length does
 * not fit its type; DOVE_ERR_MEMORY (XOF takes one buffer: the message is
 * copied); DOVE_ERR_XOF.
 */
int dove_hash_message(unsigned char t[DOVE_O], const unsigned char *m, unsigned long long m_len,
                      const unsigned char seed_pk[DOVE_SEED_PK]);

#endif
