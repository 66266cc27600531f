/*
 * Signing, and the count of its rejected draws.
 *
 * Source: [DOVE], signing.
 */
#ifndef DOVE_SIGN_H
#define DOVE_SIGN_H

/*
 * Vinegar draws rejected by dove_sign in this process so far because L was
 * singular; the version script of a library hides it, and the adapter reads it.
 *
 * It is public. A draw is rejected with probability near 1/256 whatever the key,
 * each rejection repeats about the whole work of signing, so anybody who sees the
 * time sees the count; and the rejected vinegar, output of XOF on secret input,
 * is thrown away: that L was singular for a vector nobody learns says nothing
 * usable about T. Not atomic: one thread signs at a time, as the programme's
 * global DRNG asks anyway.
 */
extern unsigned long long dove_rejected_draws;

/*
 * Signs a message: sn = (v + T z) || z || salt.
 *
 * sn        DOVE_SIG_BYTES, written; its content is undefined on error
 * sk        DOVE_SK_BYTES; no overlap with sn
 * m, m_len  message; m may be NULL when m_len is 0; no overlap with sn
 *
 * Returns 0, DOVE_ERR_ARGUMENT (message too long for a 64-bit length in bits),
 * DOVE_ERR_MEMORY, DOVE_ERR_XOF, or DOVE_ERR_DRAWS.
 */
int dove_sign(unsigned char *sn, const unsigned char *sk, const unsigned char *m,
              unsigned long long m_len);

#endif
