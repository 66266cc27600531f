/*
 * Verification. Everything it reads is public.
 *
 * Source: [DOVE], verification.
 */
#ifndef DOVE_VERIFY_H
#define DOVE_VERIFY_H

/*
 * Checks a signature. Its salt is not read: the algorithm does not authenticate it.
 *
 * pk        DOVE_PK_BYTES
 * sn        DOVE_SIG_BYTES, of which the last DOVE_SALT are not read
 * m, m_len  message; m may be NULL when m_len is 0
 *
 * Returns 0 for a valid signature, DOVE_ERR_INVALID for another,
 * DOVE_ERR_ARGUMENT (message too long for a 64-bit length in bits),
 * DOVE_ERR_MEMORY or DOVE_ERR_XOF.
 */
int dove_verify(const unsigned char *pk, const unsigned char *sn, const unsigned char *m,
                unsigned long long m_len);

#endif
