/* The smallest candidate: it does nothing, but exports the API, and tries to export more than it may. */
#include "drng.h"
#include "sig_api.h"

int sig_private(void);
int shared_helper(void);
int shared_table = 3;

int sig_private(void)
{
    return shared_table;
}

int shared_helper(void)
{
    return sig_private();
}

unsigned long long sig_get_pk_len_bytes(void)
{
    return 1;
}

unsigned long long sig_get_sk_len_bytes(void)
{
    return 1;
}

unsigned long long sig_get_sn_len_bytes(void)
{
    return 1;
}

int sig_keygen(unsigned char *pk, unsigned long long *pk_len, unsigned char *sk, unsigned long long *sk_len)
{
    *pk_len = *sk_len = 1;
    *sk = 0;
    return get_random_number(&drng_algorithm, pk, 8);
}

int sig_sign(unsigned char *sk, unsigned long long sk_len, unsigned char *m, unsigned long long m_len,
             unsigned char *sn, unsigned long long *sn_len)
{
    *sn = m_len > 0 && sk_len > 0 ? (unsigned char)(*m ^ *sk) : 0;
    *sn_len = 1;
    return 0;
}

int sig_verify(unsigned char *pk, unsigned long long pk_len, unsigned char *sn, unsigned long long sn_len,
               unsigned char *m, unsigned long long m_len)
{
    return pk_len > 0 && sn_len > 0 && m_len > 0 && *pk == (*sn ^ *m) ? 0 : -1;
}
