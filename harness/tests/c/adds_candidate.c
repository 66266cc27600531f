/*
 * A candidate of known cost: each operation makes ADDS additions of which each needs the result of
 * the one before, and little else. It signs nothing: the signature is secret key xor message.
 */
#include "drng.h"
#include "sig_api.h"

#define ADDS 4096u /* 64 rounds of 64 */
#define BYTES 32u

static void spend(void)
{
    unsigned long long sum = 0, step = 1, rounds = ADDS / 64u;

#if defined(__aarch64__)
    __asm__ volatile("0:\n"
                     ".rept 64\n"
                     "add %0, %0, %2\n"
                     ".endr\n"
                     "subs %1, %1, #1\n"
                     "b.ne 0b\n"
                     : "+r"(sum), "+r"(rounds)
                     : "r"(step)
                     : "cc");
#elif defined(__x86_64__)
    __asm__ volatile("0:\n"
                     ".rept 64\n"
                     "add %2, %0\n"
                     ".endr\n"
                     "dec %1\n"
                     "jnz 0b\n"
                     : "+r"(sum), "+r"(rounds)
                     : "r"(step)
                     : "cc");
#else
#error "write the loop for this architecture"
#endif
}

static unsigned char mixed(const unsigned char *key, const unsigned char *m, unsigned long long m_len, unsigned i)
{
    return m_len > i ? (unsigned char)(key[i] ^ m[i]) : key[i];
}

unsigned long long sig_get_pk_len_bytes(void)
{
    return BYTES;
}

unsigned long long sig_get_sk_len_bytes(void)
{
    return BYTES;
}

unsigned long long sig_get_sn_len_bytes(void)
{
    return BYTES;
}

int sig_keygen(unsigned char *pk, unsigned long long *pk_len, unsigned char *sk, unsigned long long *sk_len)
{
    spend();
    *pk_len = *sk_len = BYTES;
    if (get_random_number(&drng_algorithm, sk, 8ULL * BYTES) != 0) {
        return -2;
    }
    for (unsigned i = 0; i < BYTES; i++) {
        pk[i] = sk[i];
    }
    return 0;
}

int sig_sign(unsigned char *sk, unsigned long long sk_len, unsigned char *m, unsigned long long m_len,
             unsigned char *sn, unsigned long long *sn_len)
{
    spend();
    if (sk_len != BYTES) {
        return -2;
    }
    for (unsigned i = 0; i < BYTES; i++) {
        sn[i] = mixed(sk, m, m_len, i);
    }
    *sn_len = BYTES;
    return 0;
}

int sig_verify(unsigned char *pk, unsigned long long pk_len, unsigned char *sn, unsigned long long sn_len,
               unsigned char *m, unsigned long long m_len)
{
    unsigned char difference = 0;

    spend();
    if (pk_len != BYTES || sn_len != BYTES) {
        return -1;
    }
    for (unsigned i = 0; i < BYTES; i++) {
        difference |= (unsigned char)(sn[i] ^ mixed(pk, m, m_len, i));
    }
    return difference == 0 ? 0 : -1;
}
