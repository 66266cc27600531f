/*
 * The API of a signature candidate of the NGCC programme (Round 1).
 *
 * A candidate's own SIG_AlgorithmInstance.h includes this header and defines
 * ALGORITHM_INSTANCE, the name of the parameter set: a string of at most 64
 * letters, digits, `-` and `_`, which names the known-answer file too.
 *
 * All buffers belong to the caller, all lengths are in BYTES. A length behind a
 * pointer holds the claimed length on entry and the actual length on return.
 * Every function with a result returns 0 on success and the candidate's own
 * code from -1 to -99 on failure. The pointers lack `const` because the
 * programme declares them so; inputs are not modified.
 */
#ifndef SIG_API_H
#define SIG_API_H

#ifdef __cplusplus
extern "C" {
#endif

/* The claimed length of a public key, in bytes. */
unsigned long long sig_get_pk_len_bytes(void);

/* The claimed length of a secret key, in bytes. */
unsigned long long sig_get_sk_len_bytes(void);

/* The claimed length of a signature, in bytes. */
unsigned long long sig_get_sn_len_bytes(void);

/*
 * Makes a key pair; randomness comes from `drng_algorithm` (drng.h).
 *
 * pk, pk_len  public key, written
 * sk, sk_len  secret key, written
 */
int sig_keygen(unsigned char *pk, unsigned long long *pk_len, unsigned char *sk,
               unsigned long long *sk_len);

/*
 * Signs a message.
 *
 * sk, sk_len  secret key, read
 * m, m_len    message, read; m may be NULL when m_len is 0
 * sn, sn_len  signature, written
 */
int sig_sign(unsigned char *sk, unsigned long long sk_len, unsigned char *m,
             unsigned long long m_len, unsigned char *sn, unsigned long long *sn_len);

/*
 * Verifies a signature: 0 is valid, -1 is invalid, other negatives are errors.
 *
 * pk, pk_len  public key, read
 * sn, sn_len  signature, read
 * m, m_len    message, read; m may be NULL when m_len is 0
 */
int sig_verify(unsigned char *pk, unsigned long long pk_len, unsigned char *sn,
               unsigned long long sn_len, unsigned char *m, unsigned long long m_len);

#ifdef __cplusplus
}
#endif

#endif
