/*
 * The signature API of the NGCC programme (sig_api.h) for DOVE: checks of
 * arguments, and the promise about outputs on error.
 *
 * Every length must be the claimed one; a null pointer or another length gives
 * DOVE_ERR_ARGUMENT and writes nothing but a length of 0. After any other error
 * the output buffers are all zero and their lengths 0. Buffers must not overlap.
 */
#include <stddef.h>

#include "SIG_AlgorithmInstance.h"
#include "ct.h"
#include "keygen.h"
#include "sign.h"
#include "verify.h"

unsigned long long sig_get_pk_len_bytes(void)
{
    return DOVE_PK_BYTES;
}

unsigned long long sig_get_sk_len_bytes(void)
{
    return DOVE_SK_BYTES;
}

unsigned long long sig_get_sn_len_bytes(void)
{
    return DOVE_SIG_BYTES;
}

/* Whether an output buffer is there and claims `len` bytes; leaves its length 0,
 * to be set on success. */
static int take_output(const unsigned char *out, unsigned long long *claimed,
                       unsigned long long len)
{
    const int ok = out != NULL && claimed != NULL && *claimed == len;

    if (claimed != NULL)
        *claimed = 0;
    return ok;
}

int sig_keygen(unsigned char *pk, unsigned long long *pk_len, unsigned char *sk,
               unsigned long long *sk_len)
{
    const int pk_ok = take_output(pk, pk_len, DOVE_PK_BYTES);
    const int sk_ok = take_output(sk, sk_len, DOVE_SK_BYTES);
    int rc;

    if (!pk_ok || !sk_ok)
        return DOVE_ERR_ARGUMENT;
    rc = dove_keygen(pk, sk);
    if (rc != 0) {
        dove_wipe(pk, DOVE_PK_BYTES);
        dove_wipe(sk, DOVE_SK_BYTES);
        return rc;
    }
    *pk_len = DOVE_PK_BYTES;
    *sk_len = DOVE_SK_BYTES;
    return 0;
}

int sig_sign(unsigned char *sk, unsigned long long sk_len, unsigned char *m,
             unsigned long long m_len, unsigned char *sn, unsigned long long *sn_len)
{
    const int sn_ok = take_output(sn, sn_len, DOVE_SIG_BYTES);
    int rc;

    if (!sn_ok || sk == NULL || sk_len != DOVE_SK_BYTES || (m == NULL && m_len != 0))
        return DOVE_ERR_ARGUMENT;
    rc = dove_sign(sn, sk, m, m_len);
    if (rc != 0) {
        dove_wipe(sn, DOVE_SIG_BYTES);
        return rc;
    }
    *sn_len = DOVE_SIG_BYTES;
    return 0;
}

int sig_verify(unsigned char *pk, unsigned long long pk_len, unsigned char *sn,
               unsigned long long sn_len, unsigned char *m, unsigned long long m_len)
{
    if (pk == NULL || pk_len != DOVE_PK_BYTES || sn == NULL || sn_len != DOVE_SIG_BYTES ||
        (m == NULL && m_len != 0))
        return DOVE_ERR_ARGUMENT;
    return dove_verify(pk, sn, m, m_len);
}
